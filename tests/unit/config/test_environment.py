"""What the surroundings say."""

import pytest

from flowstone.config.environment import cores, surroundings


@pytest.mark.parametrize(
    ("env", "harness", "session"),
    [
        ({}, None, None),
        ({"AKM_AGENT_HARNESS": "claude", "AKM_SESSION_ID": "s1"}, "claude", "s1"),
        ({"CLAUDE_SESSION_ID": "s2"}, "claude", "s2"),
        ({"OPENCODE_SESSION_ID": "s3"}, "opencode", "s3"),
        ({"COPILOT_SESSION_ID": "s4"}, "copilot", "s4"),
        ({"PI_SESSION_ID": "s5"}, "pi", "s5"),
        ({"CODEX_SANDBOX": ""}, "codex", None),
        ({"GEMINI_CLI": "1"}, "gemini", None),
        ({"AKM_SESSION_ID": "s6", "CLAUDE_SESSION_ID": "s2"}, None, "s6"),
    ],
)
def test_agent_identity(env, harness, session):
    found = surroundings(env)
    assert (found.harness, found.session) == (harness, session)


def test_an_empty_no_color_does_not_count():
    assert surroundings({"NO_COLOR": "1"}).no_color
    assert not surroundings({"NO_COLOR": ""}).no_color


def test_ci_and_scheduler():
    assert surroundings({"CI": "true"}).ci
    assert not surroundings({"CI": "false"}).ci
    assert surroundings({"AKM_EVENT_SOURCE": "task"}).scheduled
    assert not surroundings({"AKM_EVENT_SOURCE": "user"}).scheduled


def test_there_is_at_least_one_core():
    assert cores() >= 1

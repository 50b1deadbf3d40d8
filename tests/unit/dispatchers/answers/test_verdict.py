"""Only a whole object with a boolean `complete` is a verdict (akm facts 15, decision 11)."""

from __future__ import annotations

import pytest

from flowstone.dispatchers.answers.verdict import NO_FEEDBACK, MalformedVerdict, verdict_of


@pytest.mark.parametrize(
    "text",
    [
        '{"complete": true}',
        '```json\n{"complete": true}\n```',
        '<think>{"complete": false}</think>{"complete": true}',
        'My verdict: {"complete": true} as required.',
    ],
)
def test_complete(text):
    assert verdict_of(text) == {"complete": True, "missing": [], "feedback": NO_FEEDBACK}


def test_a_rejection_keeps_what_is_said():
    text = '{"complete": false, "missing": [" a ", "", 3, "b"], "feedback": " mend it "}'
    assert verdict_of(text) == {"complete": False, "missing": ["a", "b"], "feedback": "mend it"}


def test_odd_lists_and_feedback_count_as_none():
    assert verdict_of('{"complete": false, "missing": "x", "feedback": 7}') == {
        "complete": False,
        "missing": [],
        "feedback": NO_FEEDBACK,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Looks good to me!",
        '{"complete": "true"}',
        '{"complete": 1}',
        '{"complete": null}',
        "{}",
        '{"complete": true',
        '[{"complete": true}]',
        "true",
        '{"complete": true} {"complete": false}',
        'Either {"complete": true} or {"complete": fal',
        'See [{"complete": true}]',
        '<think>{"complete": true}',
    ],
)
def test_everything_else_is_malformed(text):
    with pytest.raises(MalformedVerdict):
        verdict_of(text)

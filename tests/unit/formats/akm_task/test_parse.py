"""Task files of version 4: what is read, and every mistake at its place with what to write instead."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from flowstone.diagnostics import Place, Report, errors_of
from flowstone.errors import CompileError
from flowstone.formats.akm_common.targets import Family
from flowstone.formats.akm_task.document import Schedule, Task
from flowstone.formats.akm_task.parse import parse_task, read_task
from flowstone.source.file import text_of
from tests.unit.formats.akm_task.texts import MISTAKES


def parsed(text: str) -> Task:
    report = Report()
    task = parse_task(text, report)
    assert report.sorted() == ()
    assert task is not None
    return task


def mistakes(text: str) -> list[tuple[str, int]]:
    report = Report()
    assert parse_task(text, report) is None
    return [(found.code, found.place.line) for found in errors_of(report.sorted())]


def test_a_shell_task():
    task = parsed(
        "version: 4\nrun: echo a && echo $HOME | wc\nshell: bash\nworking-directory: ./sub/.\nenv: { A: 1, B: true }\n"
    )
    assert task.target.run == "echo a && echo $HOME | wc"
    assert (task.target.shell, task.target.working_directory) == ("bash", "sub")
    assert task.target.env == {"A": "1", "B": "true"}
    assert (task.declares_inputs, task.inputs, task.timeout_ms) == (False, (), UNSET)


def test_a_block_of_shell_lines():
    assert parsed("version: 4\nrun: |\n  one\n  two\n").target.run == "one\ntwo\n"


@pytest.mark.parametrize(
    ("uses", "family"),
    [
        ("workflows/kid", Family.WORKFLOW),
        ("main//workflows/deep/kid", Family.WORKFLOW),
        ("commands/review", Family.COMMAND),
        ("scripts/build.sh", Family.SCRIPT),
    ],
)
def test_targets(uses, family):
    assert parsed(f"version: 4\nuses: {uses}\n").target.family is family


def test_a_prompt_with_arguments():
    task = parsed(
        "version: 4\nuses: akm/command\nwith: { ref: commands/review, arguments: all of it }\nengine: fast-one\n"
    )
    assert task.target.arguments == {"ref": "commands/review", "arguments": "all of it"}
    assert task.dispatch.engine == "fast-one"


def test_inputs_keep_their_schema_and_their_default():
    task = parsed(
        "version: 4\nuses: workflows/kid\ninputs:\n"
        "  n: { type: integer, minimum: 1, required: true, description: How many }\n"
        "  tags: { type: array, items: { type: string }, default: [a] }\n"
        "  free: {}\n"
    )
    n, tags, free = task.inputs
    assert (n.required, n.has_default, n.schema["minimum"], n.described) == (True, False, 1, "How many")
    assert (tags.required, tags.has_default, tags.default) == (False, True, ["a"])
    assert (free.schema, task.declares_inputs) == ({}, True)


def test_schedules():
    assert parsed('version: 4\nrun: x\nschedule: "0 6 * * *"\n').schedules == (Schedule("0 6 * * *"),)
    task = parsed(
        "version: 4\nrun: x\ninputs: { n: { type: integer, required: true } }\n"
        'schedule:\n  - { cron: "@daily", inputs: { n: 1 } }\n  - { cron: "5/15 * * * MON", inputs: { n: 2.0 } }\n'
    )
    assert task.schedules == (Schedule("0 0 * * *", {"n": 1}), Schedule("5/15 * * * MON", {"n": 2}))


@pytest.mark.parametrize("alias", ["@hourly", "@daily", "@weekly", "@monthly"])
def test_aliases_are_written_out(alias):
    (schedule,) = parsed(f'version: 4\nrun: x\nschedule: "{alias}"\n').schedules
    assert len(schedule.cron.split()) == 5


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("null", None), ("0", None), ("none", None), ("250", 250), ('"30s"', 30_000), ("10m", 600_000), ("2h", 7_200_000)],
)
def test_timeouts(text, wanted):
    assert parsed(f"version: 4\nrun: x\ntimeout: {text}\n").timeout_ms == wanted


def test_everything_else_that_a_task_may_say():
    task = parsed(
        "version: 4\nname: N\ndescription: D\nwhen_to_use: W\ntags: [a, b]\nuses: commands/c\n"
        "output: { type: object }\nagent: agents/reviewer\nmodel: fast\ninference: { effort: high }\ntools: [read]\n"
        "redact: [TOKEN]\nmaxSteps: 3\nmaxRetries: 0\n"
    )
    assert (task.name, task.description, task.when_to_use, task.tags) == ("N", "D", "W", ("a", "b"))
    assert (task.dispatch.agent, task.dispatch.model, task.dispatch.tools) == ("agents/reviewer", "fast", ["read"])
    assert (task.dispatch.output, task.dispatch.inference) == ({"type": "object"}, {"effort": "high"})
    assert (task.redact, task.max_steps, task.max_retries) == (("TOKEN",), 3, 0)


@pytest.mark.parametrize(("text", "found"), MISTAKES)
def test_mistakes(text, found):
    assert found in mistakes(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("version: 4\nrun: x\ntags: [" + "a," * 1025 + "]\n", "yaml-item-limit"),
        ("version: 4\nrun: x\ninputs:\n" + "".join(f"  a{n}: {{}}\n" for n in range(257)), "yaml-key-limit"),
        ("version: 4\nrun: " + "x" * 262_145 + "\n", "yaml-text-limit"),
        ("version: 4\nrun: x\ninference: " + "[" * 70 + "]" * 70 + "\n", "yaml-depth-limit"),
        ("version: 4\nrun: x\ninference: [" + "[1,1,1,1,1,1,1,1,1],\n" * 1010 + "]\n", "yaml-node-limit"),
    ],
)
def test_bounds(text, code):
    assert code in [found for found, _ in mistakes(text)]


def test_all_mistakes_are_reported_at_once():
    text = "version: 4\nuses: workflows/a\nwith: {}\nfoo: 1\nmaxSteps: 0\n"
    assert mistakes(text) == [("with-unsupported", 3), ("unknown-key", 4), ("out-of-range", 5)]


@pytest.mark.parametrize(
    ("text", "code"),
    [("run: x\n", "TASK_SOURCE_INVALID"), ("version: 9\nrun: x\n", "TASK_SCHEMA_VERSION_UNSUPPORTED")],
)
def test_the_error_names_the_file_and_has_a_code_of_its_own(text, code):
    with pytest.raises(CompileError) as caught:
        read_task("tasks/t.yml", text_of(text.encode(), "/b/tasks/t.yml"))
    assert caught.value.code == code
    assert caught.value.message.startswith("tasks/t.yml:1: ")


@pytest.mark.parametrize(
    "text",
    [
        "version: 2\nworkflow: kid\nschedule: '0 6 * * *'\nenabled: true\nparams: { n: 1, who: [Ada] }\ntimeoutMs: 500\n",
        "version: 3\nuses: workflows/kid\non: { schedule: [{ cron: '0 6 * * *' }], workflow_dispatch: {} }\n"
        "akm: { timeout: 500 }\ninputs: { n: { type: integer, default: 1 }, who: { type: array, default: [Ada] } }\n",
    ],
)
def test_older_versions_are_converted_with_one_warning(text):
    report = Report()
    task = parse_task(text, report)
    assert task is not None
    assert (task.target.uses, task.timeout_ms) == ("workflows/kid", 500)
    assert task.schedules == (Schedule("0 6 * * *"),)
    assert {one.name: (one.schema["type"], one.default) for one in task.inputs} == {
        "n": ("integer", 1),
        "who": ("array", ["Ada"]),
    }
    (warning,) = report.sorted()
    assert (warning.code, warning.place) == ("task-converted", Place(1, 1))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("version: 2\ncommand: echo 'a b' | cat\n", "echo 'a b' | cat"),
        ("version: 2\ncommand: [echo, a b]\n", "echo 'a b'"),
    ],
)
def test_commands_of_version_2_become_shell_texts(text, target):
    task = parse_task(text, Report())
    assert task is not None
    assert task.target.run == target


def test_prompts_of_version_2():
    texts = {"Say hello.": {"content": "Say hello."}, "commands/greet": {"ref": "commands/greet"}}
    for prompt, arguments in texts.items():
        task = parse_task(f"version: 2\nprompt: {prompt}\n", Report())
        assert task is not None
        assert (task.target.uses, task.target.arguments) == ("akm/command", arguments)


@pytest.mark.parametrize(
    "text",
    [
        "version: 2\nschedule: '0 6 * * *'\n",
        "version: 2\nworkflow: a\nprompt: b\n",
        "version: 2\nworkflow: a\nhooks: {}\n",
        "version: 3\nrun: x\non: { push: {} }\n",
        "version: 3\nrun: x\nakm: { cloud: true }\n",
    ],
)
def test_what_version_4_cannot_say_is_refused(text):
    assert "task-version-unsupported" in [code for code, _ in mistakes(text)]


def test_mistakes_in_a_converted_task_stand_where_they_were_written():
    assert mistakes("version: 3\nrun: x\non:\n  schedule:\n    - cron: nonsense\n") == [("invalid-cron", 5)]

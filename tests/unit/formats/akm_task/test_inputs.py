"""Values for the inputs of a task: flags by their types, defaults, and what does not fit."""

from __future__ import annotations

import pytest

from flowstone.diagnostics import Report
from flowstone.errors import InputError
from flowstone.formats.akm_task.flags import bind_flags
from flowstone.formats.akm_task.inputs import BindingProblem, bind
from flowstone.formats.akm_task.parse import parse_task
from flowstone.formats.akm_task.write import NewTask, task_text

TEXT = """\
version: 4
uses: workflows/kid
inputs:
  n: { type: integer, required: true, minimum: 1 }
  s: { type: string, default: dflt }
  many: { type: array, items: { type: integer } }
"""


@pytest.fixture
def inputs():
    task = parse_task(TEXT, Report())
    assert task is not None
    return task.inputs


def test_given_values_and_defaults_with_their_origin(inputs):
    bound = bind_flags(inputs, [("n", "5"), ("many", "1"), ("many", "2")])
    assert bound.values == {"n": 5, "s": "dflt", "many": [1, 2]}
    assert bound.provenance == {"n": "flag", "s": "default", "many": "flag"}


def test_an_optional_input_without_default_stays_away(inputs):
    assert bind(inputs, {"n": 1}, "schedule-binding").values == {"n": 1, "s": "dflt"}


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ([("zz", "1")], "UNKNOWN_FLAG", "--zz"),
        ([], "INPUT_BINDING_INVALID", "inputs.n is required"),
        ([("n", "x")], "INPUT_BINDING_INVALID", "integer"),
        ([("n", "0")], "INPUT_BINDING_INVALID", "below minimum 1"),
        ([("n", "1"), ("n", "2")], "INPUT_BINDING_INVALID", "more than once"),
        ([("n", None)], "INPUT_BINDING_INVALID", "requires a value"),
    ],
)
def test_flags_that_do_not_fit(inputs, flags, code, words):
    with pytest.raises(InputError) as caught:
        bind_flags(inputs, flags)
    assert caught.value.code == code
    assert words in caught.value.message


def test_every_fault_is_named(inputs):
    with pytest.raises(BindingProblem) as caught:
        bind(inputs, {"n": 0, "x": 1, "many": ["a"]}, "flag", "with")
    text = str(caught.value)
    assert "with.x is no declared input; declared inputs: n, s, many" in text
    assert "with.n: 0 is below minimum 1" in text
    assert "with.many[0]: expected type integer" in text


@pytest.mark.parametrize(
    "new",
    [
        NewTask(workflow="kid", schedule="@daily", params={"n": 1, "who": ["Ada", "\u2028"], "deep": {"a": None}}),
        NewTask(workflow="main//workflows/kid"),
        NewTask(prompt='Say "hello":\n  now', engine="fast-one", description="yes"),
        NewTask(prompt="commands/review"),
        NewTask(command="echo 'a' && true # not a comment", schedule="5/15 * * * MON"),
    ],
)
def test_what_is_written_can_be_read(new):
    report = Report()
    task = parse_task(task_text(new), report)
    assert report.sorted() == ()
    assert task is not None
    assert {one.name: one.default for one in task.inputs} == new.params
    assert task.description == new.description
    assert task.target.run == new.command
    if new.workflow:
        assert task.target.uses == ("main//workflows/kid" if "//" in new.workflow else "workflows/kid")
    if new.prompt:
        assert new.prompt in (task.target.arguments or {}).values()

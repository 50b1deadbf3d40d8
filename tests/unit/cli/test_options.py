"""Flags that a file declares, and what becomes of them."""

import click
import pytest
from click.testing import CliRunner

from flowstone.cli.options import DeclaredFlag, FileFlags, run_click
from flowstone.cli.param_flags import read_flags
from flowstone.errors import FlowstoneError, InputError

DECLARED = [DeclaredFlag("n", {"type": "integer", "default": 3}, "How many"), DeclaredFlag("long-name")]


def command(declare=lambda target: DECLARED):
    seen = {}

    def callback(**given):
        seen.update(given)

    params = [
        click.Argument(["target"]),
        click.Option(["--max-steps"], type=int),
        click.Option(["-q", "--quiet"], is_flag=True),
    ]
    return FileFlags("run", params=params, callback=callback, declare=declare), seen


def flags(*argv):
    verb, seen = command(lambda target: None)
    run_click(verb, list(argv), "run")
    return seen


@pytest.mark.parametrize(
    ("argv", "given"),
    [
        (["--n", "1"], [("n", "1")]),
        (["--n=a=b"], [("n", "a=b")]),
        (["--n="], [("n", "")]),
        (["--n", "-1"], [("n", "-1")]),
        (["--n", "-x"], [("n", "-x")]),
        (["--n"], [("n", None)]),
        (["--n", "--m", "2"], [("n", None), ("m", "2")]),
        (["--n", "-q"], [("n", None)]),
        (["--n", "1", "--n", "2"], [("n", "1"), ("n", "2")]),
        (["--n", "", "--max-steps", "4"], [("n", "")]),
        (["--max-steps=4", "--n", "two words"], [("n", "two words")]),
    ],
)
def test_what_stands_behind_the_target(argv, given):
    seen = flags("workflows/w", *argv)
    assert seen["target"] == "workflows/w"
    assert seen["flags"] == tuple(given)


def test_own_flags_stand_anywhere():
    seen = flags("--max-steps", "2", "w", "-q")
    assert (seen["max_steps"], seen["quiet"], seen["flags"]) == (2, True, ())


def refused(*argv, declare=lambda target: DECLARED):
    with pytest.raises(FlowstoneError) as caught:
        run_click(command(declare)[0], list(argv), "run")
    return caught.value


def test_an_undeclared_flag_lists_the_declared_ones():
    error = refused("w", "--zz", "1")
    assert (error.code, error.message) == ("UNKNOWN_FLAG", "Unknown flag --zz.")
    assert error.hint == "w declares: --n, --long-name."
    assert refused("w", "--zz", declare=lambda target: []).hint == "w declares no parameters."


def test_names_are_exact():
    assert refused("w", "--long", "1").code == "UNKNOWN_FLAG"
    assert refused("w", "--max-step", "1").code == "UNKNOWN_FLAG"


def test_flags_before_the_target_are_the_commands_own():
    assert refused("--n", "1", "w").code == "UNKNOWN_FLAG"


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        ([], "MISSING_REQUIRED_ARGUMENT", "Missing required positional argument: TARGET"),
        (["w", "--max-steps"], "INVALID_FLAG_VALUE", "Flag --max-steps requires a value."),
        (["w", "--max-steps", "x"], "INVALID_FLAG_VALUE", "Invalid value for --max-steps: 'x' is not a valid integer."),
        (["w", "more"], "INVALID_FLAG_VALUE", "Got unexpected extra argument (more)"),
    ],
)
def test_clicks_complaints_in_our_words(argv, code, text):
    error = refused(*argv)
    assert (error.code, error.message) == (code, text)


def test_help_shows_what_the_file_declares():
    result = CliRunner().invoke(command()[0], ["workflows/w", "--help"])
    assert result.exit_code == 0
    assert "Parameters of workflows/w" in result.output
    assert "--n" in result.output
    assert "integer  How many  [default: 3]" in result.output


def test_declarations_are_asked_for_only_when_needed():
    asked = []
    verb, _ = command(lambda target: asked.append(target) or [])
    run_click(verb, ["w", "--max-steps", "1"], "run")
    assert asked == []


SCHEMAS = {
    "s": {"type": "string"},
    "n": {"type": "integer"},
    "x": {"type": "number"},
    "b": {"type": "boolean"},
    "l": {"type": "array", "items": {"type": "integer"}},
    "a": {"type": "array"},
    "o": {"type": "object"},
    "u": {},
    "sn": {"type": ["string", "null"]},
    "nn": {"type": ["integer", "null"]},
}


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([("s", "1")], {"s": "1"}),
        ([("s", None)], {"s": "true"}),
        ([("n", "-1")], {"n": -1}),
        ([("n", "1.0")], {"n": 1}),
        ([("x", "1.5")], {"x": 1.5}),
        ([("x", "1e3")], {"x": 1000}),
        ([("b", None)], {"b": True}),
        ([("b", "false")], {"b": False}),
        ([("l", "1"), ("l", "2")], {"l": [1, 2]}),
        ([("l", "[1, 2]")], {"l": [1, 2]}),
        ([("l", "7")], {"l": [7]}),
        ([("a", "x")], {"a": ["x"]}),
        ([("o", '{"a": [1]}')], {"o": {"a": [1]}}),
        ([("u", "12")], {"u": "12"}),
        ([("u", None)], {"u": True}),
        ([("z", "12")], {"z": "12"}),
        ([("sn", "null")], {"sn": "null"}),
        ([("nn", "null")], {"nn": None}),
        ([("nn", "4")], {"nn": 4}),
    ],
)
def test_values_by_schema(given, values):
    result = read_flags(given, SCHEMAS)
    assert result == values
    assert [type(value) for value in result.values()] == [type(value) for value in values.values()]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ([("n", None)], "--n requires a value of type integer"),
        ([("n", "x")], '--n must be integer; received "x"'),
        ([("n", "")], "--n must be integer"),
        ([("n", "1.5")], "--n must be integer"),
        ([("n", "9007199254740993")], "--n must be integer"),
        ([("x", "1e999")], "--x must be number"),
        ([("x", "0x10")], "--x must be number"),
        ([("s", "a"), ("s", "b")], "--s was provided more than once but is not declared as an array"),
        ([("o", "{")], "--o must be object"),
        ([("o", "[1]")], "--o must be object"),
        ([("l", "a")], "--l must be integer"),
        ([("l", "[1")], "--l must be a JSON array"),
        ([("l", None)], "--l requires a value of type array"),
        ([("b", "maybe")], "--b must be boolean"),
    ],
)
def test_values_that_do_not_fit(given, part):
    with pytest.raises(InputError) as caught:
        read_flags(given, SCHEMAS)
    assert part in str(caught.value)
    assert caught.value.code == "INVALID_FLAG_VALUE"

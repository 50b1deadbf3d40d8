"""Flags that a file declares, and what becomes of them."""

import click
import pytest
from click.testing import CliRunner

from flowstone.cli.options import DeclaredFlag, FileFlags, run_click
from flowstone.errors import FlowstoneError

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

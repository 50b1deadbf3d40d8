"""CEL expressions as an orun author meets them: what compiles, what is read, what comes out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flowstone.expr.cel import (
    EVERYWHERE,
    POLL_UNTIL,
    STEP_OUTPUTS,
    CelEnvironment,
    CelRefused,
    CompiledCel,
    compile_cel,
    evaluate,
)
from flowstone.expr.cel_errors import CelError


def compiled(source: str, environment: CelEnvironment = POLL_UNTIL) -> CompiledCel:
    found = compile_cel(source, environment)
    assert isinstance(found, CompiledCel), found
    return found


def problems(source: str, environment: CelEnvironment = EVERYWHERE) -> list[tuple[str, int]]:
    found = compile_cel(source, environment)
    assert isinstance(found, CelRefused), found
    return [(problem.message, problem.offset) for problem in found.problems]


def value(source: str, **variables: object) -> object:
    return evaluate(compiled(source), variables)


def error(source: str, **variables: object) -> str:
    with pytest.raises(CelError) as caught:
        value(source, **variables)
    return str(caught.value)


@pytest.mark.parametrize("source", ["", "  ", "\n"])
def test_blank_text_is_an_empty_expression(source):
    assert problems(source) == [("empty expression", 0)]


@pytest.mark.parametrize(
    ("source", "message", "offset"),
    [
        ("1 +", "syntax error: the expression ends too early", 3),
        ("foo == 1", "undeclared reference to 'foo'", 0),
        ("'é' + foo", "undeclared reference to 'foo'", 6),
        ("'𝄞' +\n  foo", "undeclared reference to 'foo'", 8),
        ("nope(1)", "undeclared reference to 'nope'", 4),
        ("math.greatest(1, 2)", "undeclared reference to 'math'", 0),
        ("1 + 'a' == 2", "no such overload: '_+_' for (int, string)", 2),
        ("1 ? 2", "syntax error: the expression ends too early", 5),
    ],
)
def test_a_mistake_is_told_with_its_place(source, message, offset):
    assert problems(source)[0] == (message, offset)


def test_all_unknown_names_are_told_at_once():
    assert [message for message, _ in problems("a && b")] == [
        "undeclared reference to 'a'",
        "undeclared reference to 'b'",
    ]


def test_a_variable_of_another_position_says_where_it_is_there():
    assert problems("attempt > 1")[0][0] == "undeclared reference to 'attempt' (attempt is there in poll.until only)"
    assert problems("attempt > 1", STEP_OUTPUTS)
    assert "outputs and poll.until" in problems("stdout == ''")[0][0]
    compiled("attempt > 1 && stdout == '' && exitCode == 0 && output == {}", POLL_UNTIL)
    compiled("stdout == stderr && exitCode == 0 && size(output) == 0", STEP_OUTPUTS)


@pytest.mark.parametrize("source", ["+".join(["1"] * 33), "(" * 5000 + "1", "[" * 40 + "]" * 40])
def test_deep_nesting_is_refused_and_does_not_crash(source):
    assert "32 levels" in problems(source)[0][0]


@pytest.mark.parametrize("source", ["'a\0b'", "'\ud800'"])
def test_sources_that_the_library_would_cut_are_refused(source):
    assert "NUL or half of a character" in problems(source)[0][0]


def reads(source: str) -> list[tuple[str, str | None, str | None, int]]:
    return [(read.root, read.name, read.field, read.offset) for read in compiled(source).reads]


def test_reads_are_taken_from_the_parsed_expression():
    assert reads("steps.a.stdout + steps['b'].outputs.x") == [
        ("steps", "a", "stdout", 0),
        ("steps", "b", "outputs", 17),
    ]
    assert reads("has(inputs.x) && connections['gh'].token == ''") == [
        ("inputs", "x", None, 4),
        ("connections", "gh", "token", 17),
    ]


def test_text_that_looks_like_a_reference_is_none():
    assert reads("'inputs.zzz' != 'steps.q'") == []


def test_a_name_bound_by_a_macro_is_no_variable():
    assert reads("[{'a': 1}].map(steps, steps.a)") == []
    assert reads("[1].map(x, steps.a.exitCode)") == [("steps", "a", "exitCode", 11)]
    assert reads("steps.a.outputs.l.map(steps, steps + 1)")[0][:2] == ("steps", "a")


@pytest.mark.parametrize("source", ["steps[inputs.x].status", "steps", "size(steps)", "steps.map(s, s)"])
def test_a_computed_step_name_is_refused(source):
    assert "cannot be checked" in problems(source)[0][0]


def test_a_dashed_step_name_is_one_name():
    assert reads("steps.open-pr-2.outputs.n") == [("steps", "open-pr-2", "outputs", 0)]
    assert reads("has(steps.a-b.outputs.x) ? 1 : steps.a-b.exitCode")[0][1] == "a-b"
    assert reads("[steps.a-b.exitCode].map(x, x + steps.c-d.exitCode)")[1][1] == "c-d"
    assert compiled("steps.a-b.exitCode").model.reads == ("a-b",)


def test_a_dash_elsewhere_stays_a_minus():
    steps = {"a-b": {"outputs": {"n": 5}}}
    assert value("steps.a-b.outputs.n-1", steps=steps) == 4
    assert value("attempt-1", attempt=3) == 2
    assert value("steps.a-b.outputs.n - attempt", steps=steps, attempt=2) == 3
    assert value("'steps.a-b' + \"steps.c-d\"") == "steps.a-bsteps.c-d"


def test_dashed_names_work_in_both_forms_and_beside_like_ones():
    steps = {"a-b": {"exitCode": 1}, "a": {"exitCode": 7}}
    assert value("steps.a-b.exitCode + steps['a-b'].exitCode + steps.a.exitCode", steps=steps) == 9
    assert value("steps.a-b.exitCode == 1 && '_' != 'A'", steps=steps) is True


@pytest.mark.parametrize(
    ("source", "variables", "message"),
    [
        ("inputs.a", {"inputs": {}}, "no such key: a"),
        ("inputs.a.b", {"inputs": {"a": {}}}, "no such key: b"),
        ("inputs.a + 1", {"inputs": {"a": "x"}}, "no such overload: _+_(string, int64)"),
        ("inputs.a.b", {"inputs": {"a": 1}}, "no such overload"),
        ("1 / attempt", {"attempt": 0}, "division by zero"),
        ("9223372036854775807 + attempt", {"attempt": 1}, "integer overflow"),
        ("[1][attempt]", {"attempt": 5}, "index out of bounds: 5"),
        ("int('x' + stdout)", {"stdout": ""}, "cannot convert string to int"),
    ],
)
def test_runtime_errors_have_orun_words(source, variables, message):
    assert error(source, **variables).startswith(message)


def test_an_error_on_one_side_does_not_matter_when_the_other_decides():
    assert value("1 / 0 == 1 && false") is False
    assert value("1 / 0 == 1 || true") is True


def test_an_endless_expression_is_stopped():
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    source = "true"
    for name in "abcdefgh":
        source = f"{ten}.all({name}, {source})"
    assert error(source) == "the expression takes more than 10,000 steps"


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", {"k\0": 1}, [["\0"]]])
def test_values_that_the_library_would_cut_are_refused(bad):
    message = error("inputs.a", inputs={"a": bad})
    assert message.startswith("inputs.a")
    assert "NUL" in message or "surrogate" in message


def test_only_what_is_read_is_passed_in():
    steps = {"a": {"status": "succeeded", "stdout": "\0"}, "b": {"status": "\0"}}
    assert value("steps.a.status", steps=steps) == "succeeded"
    assert value("inputs.x", inputs={"x": 1, "secret": "\0"}) == 1
    output = {"status": 200, "body": "\0", "json": {"id": 7, "huge": 2**70, "list": [2**70]}}
    assert value("output.status + output.json.id", output=output) == 207
    assert value("has(output.json) && has(output.json.id) && !has(output.json.none)", output=output) is True
    assert "64 bits" in error("output.json.list[0]", output=output)
    assert "NUL" in error("size(output)", output=output)


def test_integers_beyond_64_bits():
    assert value("inputs.a == 9223372036854775808u", inputs={"a": 2**63}) is True
    assert "64 bits" in error("inputs.a", inputs={"a": 2**64})
    assert value("inputs.a", inputs={"a": -(2**63)}) == -(2**63)


def test_a_result_may_hold_a_nul():
    assert value(r"'a\u0000b' + 'c'") == "a\0bc"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("' hi\\n'.trim()", "hi"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("'aXbX'.replace('X', '-', 1)", "a-bX"),
        ("'abcabc'.lastIndexOf('b')", 4),
        ("strings.quote('a\"b')", '"a\\"b"'),
        ("'abé'.reverse()", "éba"),
        ("'%s-%d'.format(['a', 1])", "a-1"),
        ("'AbÉ'.lowerAscii()", "abÉ"),
        ("'abc'.charAt(1) + 'abc'.substring(2)", "bc"),
        ("size('𝄞')", 1),
        ("[1, 2, 3].map(x, x > 1, x * 10)", [20, 30]),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("string(timestamp('2024-01-02T03:04:05Z'))", "2024-01-02T03:04:05Z"),
    ],
)
def test_the_standard_functions_and_the_strings_extension(source, expected):
    assert value(source) == expected


def test_the_same_source_is_compiled_once():
    assert compile_cel("1 + 41", EVERYWHERE) is compile_cel("1 + 41", EVERYWHERE)


def test_importing_the_module_does_not_load_the_library():
    script = "import sys, flowstone.expr.cel; sys.exit(any('cel_expr' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

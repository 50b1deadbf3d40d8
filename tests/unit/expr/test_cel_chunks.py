"""`map` and `filter` in linear time: the same values and errors as the library's own, for long lists too."""

from __future__ import annotations

import time

import pytest

from flowstone.expr.cel import POLL_UNTIL, CelRefused, _library_environment, compile_cel, evaluate
from flowstone.expr.cel_chunks import CHUNK, in_chunks
from flowstone.expr.cel_errors import CelError, evaluation_error

SOURCES = [
    "output.map(x, x + 1)",
    "output.map(x, x % 3 == 0, x * 2)",
    "output.filter(x, x % 7 == 0)",
    "output.filter(x, x > 3).map(x, [x, x])",
    "output.map(x, [x, x + 1].map(y, y * x))",
    "output.map(x, [x].filter(y, y > 5).map(y, {'v': y}))",
    "size(output.filter(x, output.exists(y, y == x && y < 3)))",
    "output.map(x, string(x)).join(',')",
    "output.exists(x, x > 100) || output.all(x, x >= 0)",
    "{'k': output.map(x, x)}.map(k, k + '!')",
    "[[1, 2], [3], []].map(l, l.map(x, x * 2))",
    "output.map(x, 10 / (x - 5))",
    "output.filter(x, x)",
    "output.map(x, x.name)",
    "output.map(x, x > 1, 1 / 0)",
    "output.map(result, result)",
    "output.filter(x, x < 40).map(x, [x, x].map(y, y))",
    "output.map(x, timestamp('2026-01-01T00:00:00Z') + duration(string(x) + 's')).map(t, t.getSeconds())",
]


def plainly(source: str, output: list[int]):
    """What the library itself makes of an expression."""
    try:
        result = _library_environment(POLL_UNTIL.variables).compile(source).eval(data={"output": output})
        value = result.plain_value()
    except RuntimeError as error:
        return str(evaluation_error(str(error)))
    return str(evaluation_error(str(value))) if result.type().name() == "ERROR" else value


def ours(source: str, output: list[int]):
    compiled = compile_cel(source, POLL_UNTIL)
    assert not isinstance(compiled, CelRefused)
    try:
        return evaluate(compiled, {"output": output})
    except CelError as error:
        return str(error)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 300])
def test_the_value_is_the_library_s_own(source, length):
    # Nested macros are refused early by their possible size, and exists(…) inside takes many steps.
    output = list(range(min(length, 50) if "y" in source else length))
    assert ours(source, output) == plainly(source, output)


def test_thousands_of_elements_take_a_moment():
    output = list(range(9_900))
    began = time.process_time()
    assert ours("output.map(x, x + 1)", output) == list(range(1, 9_901))
    assert ours("output.filter(x, x % 2 == 0)", output) == list(range(0, 9_900, 2))
    assert time.process_time() - began < 1.5


def test_more_than_the_steps_allow_is_refused_as_before():
    assert ours("output.map(x, x)", list(range(10_001))) == "the expression takes more than 10,000 steps"


@pytest.mark.parametrize("source", ["output.a", "output.exists(x, x)", "output.all(x, x)", "[1] + [2]"])
def test_what_builds_no_list_is_left_alone(source):
    assert in_chunks(_library_environment(POLL_UNTIL.variables).compile(source).serialize()) is None

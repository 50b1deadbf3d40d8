"""Evaluations are bounded in memory: what could build huge values is refused before it begins."""

from __future__ import annotations

import pytest

from flowstone.expr.cel import POLL_UNTIL, CompiledCel, compile_cel, evaluate
from flowstone.expr.cel_errors import CelError


def value(source: str, **variables: object) -> object:
    compiled = compile_cel(source, POLL_UNTIL)
    assert isinstance(compiled, CompiledCel), compiled
    return evaluate(compiled, variables)


@pytest.mark.parametrize(
    "source",
    [
        "stdout.replace('a', stdout).replace('a', stdout)",
        "stdout" + ".replace('', 'aaaaaaaaaaaaaaaa')" * 6,
        "[stdout]" + ".map(x, x + x)" * 20,
        "stdout.split('').join(stdout)",
        "size([stdout].map(x, [x, x])" + ".map(x, [x, x])" * 18 + ")",
        "stdout.split('').map(x, stdout + x)",
    ],
)
def test_what_could_grow_without_measure_is_refused(source):
    with pytest.raises(CelError, match="more than 256 MiB"):
        value(source, stdout="a" * 100_000)


@pytest.mark.parametrize(
    "source",
    [
        "size(stdout.split('\\n').map(l, l.trim()).filter(l, l != '').join(', ')) > 0",
        "stdout.replace('a', 'bb').replace('b', '').trim() == ''",
        "size(stdout.split('\\n').map(l, l.split('=')[0]).join(',')) > 0",
        "size(stdout.split('\\n').map(l, l + '!').map(l, '<' + l + '>')) > 0",
        "size('%s: %d'.format([stdout.substring(0, 10), 5])) > 0",
        "stdout.split('\\n').exists(l, l == 'k=v0' + '1')",
    ],
)
def test_ordinary_work_on_large_output_is_not(source):
    evaluated = value(source, stdout="\n".join(f"k=v{number:0100}" for number in range(2_000)))
    assert isinstance(evaluated, bool)

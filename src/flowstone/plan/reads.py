"""What a step rests on: the other steps whose results its references, conditions and texts name."""

from __future__ import annotations

from collections.abc import Iterator

from flowstone.expr.model import Template
from flowstone.plan.model import FanOut, Poll, Route, Step
from flowstone.plan.units import ApprovalSpec, ChildSpec, ExecSpec, HttpSpec, LiteralEnv, ScriptSpec, SleepSpec


def rests_on(step: Step) -> frozenset[str]:
    """The steps whose results decide whether a step's units run, and with what."""
    return frozenset((*reads_of(step), *unit_reads(step), *step.selected_by))


def reads_of(step: Step) -> tuple[str, ...]:
    """The steps that a step's own references and conditions read, outside its unit's texts."""
    found = [name for reference in step.inputs for name in reference.reads]
    if step.when is not None:
        found += step.when.reads
    match step.action:
        case FanOut(over=over):
            found += over.reads
        case Route(value=value):
            found += value.reads
        case _:
            pass
    return tuple(found)


def unit_reads(step: Step) -> Iterator[str]:
    """The steps that a step's unit, its outputs and its poll read."""
    for output in step.outputs:
        yield from output.value.reads
    if isinstance(step.repeat, Poll):
        yield from step.repeat.until.reads
    if step.unit is not None and step.unit.given is not None:
        yield from step.unit.given.reads
    match step.unit.spec if step.unit else None:
        case ExecSpec(argv=argv, cwd=cwd, env=env):
            texts = [*argv, cwd, *(binding.value for binding in env if isinstance(binding, LiteralEnv))]
            for text in texts:
                yield from text.reads if isinstance(text, Template) else ()
        case SleepSpec(duration=expression) | ApprovalSpec(prompt=expression):
            yield from expression.reads
        case HttpSpec(arguments=expression) | ScriptSpec(arguments=expression) | ChildSpec(arguments=expression):
            yield from expression.reads
        case _:
            pass

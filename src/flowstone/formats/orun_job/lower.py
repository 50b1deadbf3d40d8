"""Document → plan: a job becomes a chain of steps in the one plan model. It has passed every check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from flowstone.expr.cel import EVERYWHERE, STEP_OUTPUTS, CompiledCel, compile_cel
from flowstone.expr.duration import parse_go_duration
from flowstone.expr.model import Cel, Expression, Items, Literal, Record
from flowstone.formats.orun.grammar import DEFAULT_BASE_DELAY_MS, DEFAULT_TIMEOUT_MS
from flowstone.formats.orun.lower import CAPTURE, ENVIRONMENT, MAX_PARALLEL, POLICIES
from flowstone.formats.orun_job import grammar
from flowstone.formats.orun_job.document import Approval, Document, Step
from flowstone.formats.orun_job.references import filled
from flowstone.plan import model as plans
from flowstone.plan.units import (
    AnySpec,
    ApprovalSpec,
    ChildSpec,
    EnvBinding,
    ExecSpec,
    LiteralEnv,
    PassEnv,
    TakeUp,
)
from flowstone.source.tree import Mapping, Node, Scalar, Sequence

DIALECT = "orun-job"


class Found(Protocol):
    """The workflows that the steps of a job run."""

    def plan(self, step: Step) -> plans.Plan | None:
        """The plan of a step's workflow; None for a step without one."""

    def provenance(self, step: Step) -> tuple[tuple[str, str], ...]:
        """The variables that tell the commands of a fetched workflow where it came from."""

    def files_of(self, document: Document) -> tuple[plans.SourceFile, ...]:
        """All files that the workflows of a job are made of."""


def lower(document: Document, source: plans.SourceFile, found: Found) -> plans.Plan:
    """The plan of a checked job; the files of its workflows are pinned."""
    steps = tuple(_chain(document, found))
    return plans.Plan(
        dialect=DIALECT,
        name=document.name,
        title=document.name,
        steps=steps,
        declares_params=True,
        connections=tuple(_connections(document, found)),
        policies=msgspec.structs.replace(POLICIES, resume=plans.ResumeRule.PINNED),
        limits=plans.Limits(default_run_width=MAX_PARALLEL, host_capped=False),
        source=source,
        read_set=(source, *found.files_of(document)),
    )


def _chain(document: Document, found: Found) -> Iterator[plans.Step]:
    """Each step after the one before; one with an approval has the wait for it in front."""
    before: tuple[str, ...] = ()
    join = plans.Join.ALL_SATISFIED
    for step in document.steps:
        if step.approval is not None and step.verbs:
            guard = _waiting(step, step.approval, step.name + grammar.APPROVAL_SUFFIX)
            yield msgspec.structs.replace(guard, needs=before, join=join)
            before, join = (guard.id,), _join_after(step)
        made = _waiting(step, step.approval, step.name) if step.approval and not step.verbs else _step(step, found)
        yield msgspec.structs.replace(made, needs=before, join=join)
        before, join = (made.id,), _join_after(step)


def _join_after(step: Step) -> plans.Join:
    return plans.Join.ALL_ENDED if step.continues else plans.Join.ALL_SATISFIED


def _waiting(step: Step, approval: Approval, step_id: str) -> plans.Step:
    assert approval.prompt is not None
    spec = ApprovalSpec(
        prompt=_text(approval.prompt),
        timeout_ms=None if approval.timeout is None else _milliseconds(approval.timeout),
        approve_on_timeout=approval.on_timeout is not None and approval.on_timeout.text == "approve",
        guards=step.name if step_id != step.name else None,
    )
    unit = plans.Unit(spec, timeout_ms=None, timeout_set=True)
    return plans.Step(step_id, plans.Single(unit), tolerated=step.continues, place=approval.place)


def _step(step: Step, found: Found) -> plans.Step:
    plan = found.plan(step)
    bound = DEFAULT_TIMEOUT_MS if step.run is not None else None
    timeout = bound if step.timeout is None else _milliseconds(step.timeout)
    return plans.Step(
        id=step.name,
        action=plans.Single(plans.Unit(_spec(step, plan, found), timeout_ms=timeout, timeout_set=True)),
        when=_unless_rejected(step),
        repeat=_repeat(step),
        outputs=tuple(plans.Output(o.name, _cel(o.text.text.strip())) for o in step.outputs),
        tolerated=step.continues,
        place=step.place,
        connections=() if plan is None else tuple(shared_name(step, name) for name in uses_of(plan)),
    )


def _unless_rejected(step: Step) -> Cel | None:
    """A step whose job goes on is skipped when its approval is refused; else that ends the job."""
    if step.approval is None or not step.continues:
        return None
    compiled = compile_cel(f'!steps["{step.name}{grammar.APPROVAL_SUFFIX}"].failed', EVERYWHERE)
    assert isinstance(compiled, CompiledCel)
    return compiled.model


def _spec(step: Step, plan: plans.Plan | None, found: Found) -> AnySpec:
    if plan is None or plan.source is None or step.workflow is None:
        return _command(step)
    return ChildSpec(
        ref=step.workflow.text,
        arguments=_record(step),
        plan=msgspec.to_builtins(plan),
        digest=plan.source.digest,
        provenance=found.provenance(step),
        grants=tuple((c.name, shared_name(step, c.name)) for c in plan.connections if _own(step, c.name)),
        take_up=TakeUp.ALWAYS if step.resume else TakeUp.UNFINISHED,
    )


def _command(step: Step) -> ExecSpec:
    assert step.run is not None
    own = {variable.name for variable in step.env}
    env: list[EnvBinding] = [PassEnv(n) for n in dict.fromkeys(n.text for n in step.env_inherit) if n not in own]
    env += [LiteralEnv(variable.name, filled(variable.text.text), secret=False) for variable in step.env]
    return ExecSpec(
        argv=(*grammar.SHELL, filled(step.run.text)),
        cwd=None if step.cwd is None else filled(step.cwd.text),
        env=tuple(env),
        environment=ENVIRONMENT,
        capture=CAPTURE,
    )


def _repeat(step: Step) -> plans.Repeat:
    if step.retry is None:
        return plans.Once()
    base, kind = step.retry.base_delay, step.retry.kind
    return plans.Retry(
        extra=step.retry.max_retries or 0,
        base_ms=DEFAULT_BASE_DELAY_MS if base is None else _milliseconds(base),
        exponential=kind is None or kind.text == "exponential",
    )


def _connections(document: Document, found: Found) -> Iterator[plans.Connection]:
    """What the steps grant themselves, each for its workflow alone, and what the start must grant to all."""
    shared: dict[str, plans.Connection] = {}
    for step in document.steps:
        plan = found.plan(step)
        for declared in () if plan is None else plan.connections:
            grant = next((grant for grant in step.grants if grant.name == declared.name), None)
            if grant is None:
                shared.setdefault(declared.name, plans.Connection(declared.name, declared.type))
            else:
                fields = tuple((field.name, field.text.text) for field in grant.fields)
                yield plans.Connection(shared_name(step, declared.name), declared.type, fields)
    yield from shared.values()


def shared_name(step: Step, name: str) -> str:
    """What the job calls a connection of a step's workflow: a name that no flag can give, if it grants it itself."""
    return f"{step.name}.{name}" if _own(step, name) else name


def _own(step: Step, name: str) -> bool:
    return any(grant.name == name for grant in step.grants)


def uses_of(plan: plans.Plan) -> tuple[str, ...]:
    """The connections that a workflow cannot do without."""
    used = [name for step in plan.steps for name in step.connections]
    used += [name for output in plan.outputs for name in output.connections]
    return tuple(dict.fromkeys(used))


def _record(step: Step) -> Expression:
    return _value(Mapping(step.arguments, step.place))


def _value(node: Node) -> Expression:
    """A value of `with`, to any depth; what holds no reference is a literal as a whole."""
    match node:
        case Scalar(value=str()):
            return _text(node)
        case Scalar():
            return Literal(node.value)
        case Sequence():
            members = tuple(_value(item) for item in node.items)
            literal = [member.value for member in members if isinstance(member, Literal)]
            return Literal(literal) if len(literal) == len(members) else Items(members)
        case Mapping():
            fields = tuple((entry.name, _value(entry.value)) for entry in node.entries)
            known = {name: value.value for name, value in fields if isinstance(value, Literal)}
            return Literal(known) if len(known) == len(fields) else Record(fields)


def _text(scalar: Scalar) -> Expression:
    text = filled(scalar.text)
    return Literal(text) if isinstance(text, str) else text


def _cel(source: str) -> Cel:
    compiled = compile_cel(source, STEP_OUTPUTS)
    assert isinstance(compiled, CompiledCel)
    return compiled.model


def _milliseconds(text: Scalar) -> int:
    """At least one: a shorter duration is not none."""
    return max(1, parse_go_duration(text.text) // 1_000_000)

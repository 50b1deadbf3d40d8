"""Document → plan: the language ends here. The document has passed every check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from flowstone.expr.cel import EVERYWHERE, POLL_UNTIL, STEP_OUTPUTS, CelEnvironment, CompiledCel, compile_cel
from flowstone.expr.duration import parse_go_duration
from flowstone.expr.model import Cel, Expression, Items, Literal, Record, Text
from flowstone.expr.templates import OPEN, parse_template
from flowstone.formats.orun import document as orun
from flowstone.formats.orun import grammar
from flowstone.formats.orun.check_inputs import declared_value
from flowstone.formats.orun.grants import connections_of_output, connections_of_step
from flowstone.plan.model import (
    Connection,
    Join,
    Limits,
    Once,
    OnFailure,
    OnOutputError,
    Output,
    Param,
    Plan,
    Policies,
    Poll,
    Repeat,
    ResumeRule,
    Retry,
    Single,
    SourceFile,
    Step,
    Unit,
)
from flowstone.plan.units import (
    AnySpec,
    CaptureRule,
    ChildSpec,
    CwdRule,
    Drain,
    EnvBinding,
    EnvironmentRule,
    ExecSpec,
    HttpSpec,
    LiteralEnv,
    Overflow,
    PassEnv,
    ScriptSpec,
    SleepSpec,
)
from flowstone.source.tree import Entry, Mapping, Node, Scalar, Sequence

POLICIES = Policies(
    on_failure=OnFailure.ISOLATE,
    resume=ResumeRule.SAME_SOURCE,
    on_output_error=OnOutputError.FAIL_RUN,
    empty_text_absent=False,
    reuse_units=False,
    unit_cap=None,
)
CAPTURE = CaptureRule(
    limit=grammar.CAPTURE_BYTES,
    overflow=Overflow.DROP,
    drain=Drain.KEEP,
    grace_ms=grammar.PIPE_GRACE_MS,
    strip_newlines=False,
    keep_streams=True,
)
ENVIRONMENT = EnvironmentRule(base=grammar.BASE_ENVIRONMENT, shim=grammar.SHIM)


MAX_PARALLEL = 4
"""Steps at a time where neither the workflow nor the start says otherwise (reference, "Top level")."""


class Nested(msgspec.Struct, frozen=True):
    """A nested file: its plan, and where it came from if that is not where the nesting file did."""

    plan: Plan
    provenance: tuple[tuple[str, str], ...] = ()


PlanOf = Callable[[str], Nested]
"""What lies behind the path or reference by which a document nests a file."""


def lower(document: orun.Document, source: SourceFile, children: tuple[SourceFile, ...], plan_of: PlanOf) -> Plan:
    """The plan of a checked document; `children` are the nested files that checking has read."""
    return Plan(
        dialect="orun",
        name=document.name,
        title=document.name,
        steps=tuple(_step(step, document, plan_of) for step in document.steps),
        params=tuple(_param(declared) for declared in document.inputs),
        declares_params=True,
        connections=tuple(
            Connection(declared.name, declared.type.text)
            for declared in document.connections
            if declared.type is not None
        ),
        outputs=tuple(
            _output(output, EVERYWHERE, connections_of_output(output, document)) for output in document.outputs
        ),
        policies=POLICIES,
        limits=Limits(run_width=document.max_parallel, default_run_width=MAX_PARALLEL, host_capped=False),
        source=source,
        read_set=(source, *children),
    )


def _step(step: orun.Step, document: orun.Document, plan_of: PlanOf) -> Step:
    child = None if step.workflow is None else plan_of(step.workflow.text)
    connections = (*connections_of_step(step, document), *(_connections(child.plan) if child else ()))
    timeout = grammar.DEFAULT_TIMEOUT_MS if step.timeout is None else _milliseconds(step.timeout)
    return Step(
        id=step.name,
        action=Single(Unit(_spec(step, child), timeout_ms=timeout, timeout_set=True)),
        needs=tuple(need.text for need in step.needs),
        join=Join.ALL_ENDED if step.continue_on_error else Join.ALL_SATISFIED,
        when=None if step.when is None else _cel(step.when, EVERYWHERE),
        repeat=_repeat(step),
        outputs=tuple(_output(output, STEP_OUTPUTS) for output in step.outputs),
        tolerated=step.continue_on_error,
        place=step.place,
        connections=tuple(dict.fromkeys(connections)),
    )


def _connections(plan: Plan) -> Iterator[str]:
    """The connections that a nested workflow needs."""
    for step in plan.steps:
        yield from step.connections
    for output in plan.outputs:
        yield from output.connections


def _spec(step: orun.Step, child: Nested | None) -> AnySpec:
    if child is not None and step.workflow is not None:
        digest = child.plan.source.digest if child.plan.source is not None else ""
        return ChildSpec(step.workflow.text, _record(step), msgspec.to_builtins(child.plan), digest, child.provenance)
    match step.action:
        case None:
            return _command(step)
        case Scalar(text="http.request"):
            return HttpSpec(_record(step), step.connection.text if step.connection else None)
        case Scalar(text="script"):
            return ScriptSpec(_record(step))
        case _:
            return SleepSpec(_sleep(step))


def _command(step: orun.Step) -> ExecSpec:
    own = {variable.name for variable in step.env}
    inherited = dict.fromkeys(name.text for name in step.env_inherit)
    env: list[EnvBinding] = [PassEnv(name) for name in inherited if name not in own]
    env += [LiteralEnv(variable.name, _text(variable.text), secret=False) for variable in step.env]
    return ExecSpec(
        argv=tuple(_text(word) for word in step.run),
        cwd=None if step.cwd is None else _text(step.cwd),
        cwd_rule=CwdRule.RUN_FOLDER,
        env=tuple(env),
        environment=ENVIRONMENT,
        capture=CAPTURE,
    )


def _sleep(step: orun.Step) -> Expression:
    """The duration, as text: an unquoted number such as 0 is its spelling."""
    node = next(entry.value for entry in step.arguments if entry.name == "duration")
    assert isinstance(node, Scalar)
    text = _text(node)
    if isinstance(text, str):
        return Literal(text)
    return Record((("duration", text),), (node.place.line,), "with")


def _repeat(step: orun.Step) -> Repeat:
    if step.poll is not None:
        return _poll(step.poll)
    if step.retry is None:
        return Once()
    base, kind = step.retry.base_delay, step.retry.kind
    return Retry(
        extra=step.retry.max_retries or 0,
        base_ms=grammar.DEFAULT_BASE_DELAY_MS if base is None else _milliseconds(base),
        exponential=kind is None or kind.text == "exponential",
    )


def _poll(poll: orun.Poll) -> Poll:
    assert poll.interval is not None
    assert poll.timeout is not None
    assert poll.until is not None
    return Poll(
        interval_ms=_milliseconds(poll.interval),
        timeout_ms=_milliseconds(poll.timeout),
        until=_cel(poll.until, POLL_UNTIL),
        interval_text=poll.interval.text,
        timeout_text=poll.timeout.text,
    )


def _param(declared: orun.Input) -> Param:
    kind = declared.type.text if declared.type else None
    return Param(
        name=declared.name,
        schema={"type": kind} if kind else {},
        description=declared.description,
        required=declared.required,
        has_default=declared.default is not None,
        default=None if declared.default is None else declared_value(declared, declared.default),
        secret=declared.secret,
        pattern=declared.pattern.text if declared.pattern else None,
        values=None if declared.values is None else tuple(declared_value(declared, v) for v in declared.values),
        type=kind,
    )


def _output(output: orun.Named, environment: CelEnvironment, connections: tuple[str, ...] = ()) -> Output:
    return Output(output.name, _cel(output.text, environment), connections=connections)


def _record(step: orun.Step) -> Expression:
    fields = tuple((entry.name, _value(entry.value)) for entry in step.arguments)
    if all(isinstance(value, Literal) for _, value in fields):
        return Literal({name: value.value for name, value in fields if isinstance(value, Literal)})
    return Record(fields, _lines(step.arguments), "with")


def _lines(entries: Iterable[Entry]) -> tuple[int, ...]:
    return tuple(entry.value.place.line for entry in entries)


def _value(node: Node) -> Expression:
    """A value of `with`, to any depth; what holds no expression is a literal as a whole."""
    match node:
        case Scalar(value=str()):
            text = _text(node)
            return Literal(text) if isinstance(text, str) else text
        case Scalar():
            return Literal(node.value)
        case Sequence():
            members = tuple(_value(item) for item in node.items)
            literal = [member.value for member in members if isinstance(member, Literal)]
            return Literal(literal) if len(literal) == len(members) else Items(members)
        case Mapping():
            fields = tuple((entry.name, _value(entry.value)) for entry in node.entries)
            known = {name: value.value for name, value in fields if isinstance(value, Literal)}
            return Literal(known) if len(known) == len(fields) else Record(fields, _lines(node.entries))


def _text(scalar: Scalar) -> Text:
    if OPEN not in scalar.text:
        return scalar.text
    parsed = parse_template(scalar.text, EVERYWHERE).text
    assert parsed is not None
    return parsed


def _cel(scalar: Scalar, environment: CelEnvironment) -> Cel:
    compiled = compile_cel(scalar.text.strip(), environment)
    assert isinstance(compiled, CompiledCel)
    return compiled.model


def _milliseconds(text: Scalar) -> int:
    """At least one: a shorter duration is not none."""
    nanoseconds = parse_go_duration(text.text)
    return max(1, nanoseconds // 1_000_000) if nanoseconds else 0

"""Document → plan: here the akm languages end, and what they do differently becomes data.

The order of the steps becomes needs, routes become selections, and defaults that a document gives
to its units are merged into them; what configuration fills in is left open for freezing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from flowstone.expr.model import Reference
from flowstone.expr.refs import parse_reference
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.commands import argv_of_run
from flowstone.formats.akm_common.prompts import JUDGE, UNIT
from flowstone.formats.akm_prompts.template import expand
from flowstone.plan import model as plan
from flowstone.plan.units import (
    AnySpec,
    AssetTarget,
    EnvBinding,
    EnvironmentRule,
    EnvRef,
    ExecSpec,
    LiteralEnv,
    PassEnv,
    PromptTarget,
)

DIALECT = "akm"
ALLOWLIST = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SystemRoot",
    "SystemDrive",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
    "AKM_EVENT_SOURCE",
)
"""Variables that a command gets from the environment of its driver (akm facts 3.7)."""
ENVIRONMENT = EnvironmentRule(base=ALLOWLIST, context="AKM_")
POLICIES = plan.Policies(
    on_failure=plan.OnFailure.HALT,
    resume=plan.ResumeRule.FROZEN,
    on_output_error=plan.OnOutputError.ROLL_BACK,
    empty_text_absent=True,
    reuse_units=True,
    children=plan.ChildRule.BY_HAND,
    hashing=plan.HashRule(
        prefix="akm.workflow.unit\0v7\0", version=7, child_prefix="akm.workflow.child-invocation\0v1\0"
    ),
    preamble=UNIT,
)
BACKOFF = plan.Backoff(reasons=("llm_rate_limit",))
"""A rate limit passes with time; other failures are repeated at once (decision 9)."""
_NO_DEFAULTS = ir.Defaults()
_NO_OPTIONS = ir.UnitOptions()


def lower(document: ir.Document, source: plan.SourceFile | None = None) -> plan.Plan:
    """The plan of a document without mistakes; `source` is the file that it was read from."""
    routes = _selectors(document.steps)
    defaults = document.defaults or _NO_DEFAULTS
    steps: list[plan.Step] = []
    for step in document.steps:
        previous = steps[-1].id if steps else None
        steps.append(_lower_step(step, previous, routes.get(step.id, ()), defaults))
    budget = document.budget or ir.Budget()
    return plan.Plan(
        dialect=DIALECT,
        name=document.name,
        title=document.name,
        description=document.description,
        tags=document.tags,
        preamble=_preamble(document),
        params=tuple(_param(name, schema) for name, schema in (document.params or {}).items()),
        declares_params=document.params is not None,
        outputs=_outputs(document.outputs or {}),
        triggers=tuple(_trigger(trigger) for trigger in document.triggers),
        defaults=msgspec.to_builtins(document.defaults) if document.defaults else None,
        steps=tuple(steps),
        policies=POLICIES,
        budget=plan.Budget(max_units=budget.max_units, max_tokens=budget.max_tokens),
        source=source,
        read_set=(source,) if source else (),
    )


def _selectors(steps: tuple[ir.Step, ...]) -> dict[str, tuple[str, ...]]:
    """For each target of a route the routing steps that name it, in order."""
    found: dict[str, dict[str, None]] = {}
    for step in steps:
        if step.route is not None:
            targets = [branch.step_id for branch in step.route.branches]
            for target in (*targets, step.route.default_step_id):
                if target is not None:
                    found.setdefault(target, {})[step.id] = None
    return {target: tuple(routers) for target, routers in found.items()}


def _lower_step(step: ir.Step, previous: str | None, selected_by: tuple[str, ...], defaults: ir.Defaults) -> plan.Step:
    options = step.unit or _NO_OPTIONS
    return plan.Step(
        id=step.id,
        name=step.name,
        action=_action(step, options, defaults),
        needs=(previous,) if previous is not None else (),
        selected_by=selected_by,
        repeat=_repeat(options),
        inputs=tuple(parse_reference(text) for text in step.inputs),
        schema=step.output,
        has_schema=step.output is not None,
        on_error=plan.OnError(options.on_error or defaults.on_error or "fail"),
        gate=_gate(step),
        instructions=_instructions(step),
        place=step.source.start,
    )


def _action(step: ir.Step, options: ir.UnitOptions, defaults: ir.Defaults) -> plan.Action:
    if step.route is not None:
        branches = tuple(plan.Branch(branch.match, branch.step_id) for branch in step.route.branches)
        return plan.Route(parse_reference(step.route.input), branches, step.route.default_step_id)
    unit = _unit(step, options, defaults)
    if step.map is None:
        return plan.Single(unit)
    reducer = plan.Reducer(step.map.reducer or "collect")
    return plan.FanOut(parse_reference(step.map.over), unit, step.map.concurrency, reducer)


def _unit(step: ir.Step, options: ir.UnitOptions, defaults: ir.Defaults) -> plan.Unit:
    schema = options.output
    if schema is None and step.map is None:
        # The schema of a solo step is taught to its unit: nothing else could make it answer in JSON.
        schema = step.output
    timeout = options.timeout_ms if options.timeout_ms is not UNSET else defaults.timeout_ms
    return plan.Unit(
        spec=_spec(step, options, defaults),
        timeout_ms=None if timeout is UNSET else timeout,
        timeout_set=timeout is not UNSET,
        schema=schema,
        has_schema=schema is not None,
        isolation=options.isolation or "none",
    )


def _spec(step: ir.Step, options: ir.UnitOptions, defaults: ir.Defaults) -> AnySpec:
    if step.exec is not None:
        names: tuple[EnvBinding, ...] = tuple(PassEnv(name) for name in step.exec.pass_env)
        refs = tuple(EnvRef(ref) for ref in options.env)
        return ExecSpec(argv=step.exec.command, cwd=step.exec.cwd, env=(*names, *refs), environment=ENVIRONMENT)
    if step.run is not None:
        argv = argv_of_run(step.shell or "sh", step.run)
        return ExecSpec(argv=argv, cwd=step.working_directory, env=_literal_env(step), environment=ENVIRONMENT)
    content = _content(step)
    prompt = PromptTarget(
        content=content or "",
        engine=options.engine or defaults.engine,
        model=options.model or defaults.model,
        llm=_merge(defaults.llm, options.llm),
        env=options.env,
        own_model=options.model is not None,
        own_llm=options.llm,
        values=() if content is None else _literal_env(step),
    )
    if content is not None:
        return prompt
    stored = (step.with_ or {})["ref"] if step.command_mode == "stored-ref" else step.uses
    return AssetTarget(
        ref=stored or "",
        arguments=step.with_,
        has_arguments=step.with_ is not None,
        mode=step.command_mode,
        env=_literal_env(step),
        environment=ENVIRONMENT,
        prompt=prompt,
    )


def _content(step: ir.Step) -> str | None:
    """The prompt that stands in a step itself, its arguments filled in; None where it stands elsewhere."""
    given = step.with_ or {}
    match step.command_mode:
        case "literal":
            return str(given["content"])
        case "portable-template":
            return expand(given["content"], given.get("arguments", ""))
        case _:
            return None


def _literal_env(step: ir.Step) -> tuple[LiteralEnv, ...]:
    return tuple(LiteralEnv(name, value) for name, value in (step.env or {}).items())


def _merge(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Objects merge key by key at every level; anything else is replaced."""
    if base is None or over is None:
        found = base if over is None else over
        return None if found is None else dict(found)
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merge(inner, value) if both else value
    return merged


def _repeat(options: ir.UnitOptions) -> plan.Repeat:
    if options.retry is None:
        return plan.Once()
    return plan.Retry(extra=options.retry.max, reasons=options.retry.on, backoff=BACKOFF)


def _gate(step: ir.Step) -> plan.Gate | None:
    """A gate needs a rubric. A command cannot answer feedback, so it is judged once at most."""
    if step.gate is None or not step.gate.rubric:
        return None
    is_command = step.exec is not None or step.run is not None
    return plan.Gate(step.gate.rubric, 1 if is_command else step.gate.max_loops or 1, system=JUDGE)


def _instructions(step: ir.Step) -> str | None:
    if step.run is not None:
        return f"Run {step.run}."
    content = _content(step)
    return step.instructions if content is None else content


def _param(name: str, schema: dict[str, Any]) -> plan.Param:
    description = schema.get("description")
    declared = schema.get("type")
    return plan.Param(
        name=name,
        schema=schema,
        description=description if isinstance(description, str) else None,
        has_default="default" in schema,
        default=schema.get("default"),
        type=declared if isinstance(declared, str) else None,
    )


def _outputs(exports: Mapping[str, ir.Export]) -> tuple[plan.Output, ...]:
    return tuple(
        plan.Output(name, _reference(export), export.schema, export.schema is not None)
        for name, export in sorted(exports.items())
    )


def _reference(export: ir.Export) -> Reference:
    return parse_reference(export.from_)


def _trigger(trigger: ir.Trigger) -> plan.Trigger:
    return plan.Trigger(trigger.cron if isinstance(trigger, ir.ScheduleTrigger) else None)


def _preamble(document: ir.Document) -> str | None:
    """The whole preamble, with the heading that gave the document its name."""
    extension = (document.extensions or {}).get(ir.MARKDOWN_EXTENSION, {})
    preamble: str | None = extension.get("preamble", document.preamble)
    return preamble

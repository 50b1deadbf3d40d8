"""Task → plan of one step, for a target that is no workflow: what `task run` runs and `explain` shows."""

from __future__ import annotations

from typing import Literal

import msgspec

from flowstone.diagnostics import Place
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.lower import lower
from flowstone.formats.akm_common.targets import Family
from flowstone.formats.akm_prompts.template import TOKEN
from flowstone.formats.akm_task.document import Task
from flowstone.plan.model import Plan, Single, SourceFile
from flowstone.plan.units import AssetTarget, PromptTarget

STEP = "task"


def lower_task(task: Task, name: str, source: SourceFile) -> Plan:
    """The plan of a task's own target. A workflow is no such target: it is run itself."""
    span = ir.Span(path=source.path, start=Place(), end=Place())
    step = step_of(task, STEP, span)
    document = ir.Document(
        source_ir_version=1,
        name=task.name or name,
        description=task.description,
        tags=task.tags,
        triggers=(ir.DispatchTrigger(source=span),),
        jobs=(ir.Job(id="task", needs=(), steps=(step,), source=span),),
        source=span,
    )
    return _asking(task, lower(document, source))


def _asking(task: Task, plan: Plan) -> Plan:
    """The plan with the agent and the tools that the task asks for, where its target is a prompt."""
    tools = (task.dispatch.tools,) if isinstance(task.dispatch.tools, str) else tuple(task.dispatch.tools or ())
    step = plan.steps[0]
    spec = step.unit.spec if step.unit is not None else None
    prompt = spec.prompt if isinstance(spec, AssetTarget) else spec
    if not isinstance(prompt, PromptTarget) or (task.dispatch.agent is None and not tools):
        return plan
    prompt = msgspec.structs.replace(prompt, agent=task.dispatch.agent, tools=tools)
    spec = msgspec.structs.replace(spec, prompt=prompt) if isinstance(spec, AssetTarget) else prompt
    assert step.unit is not None
    action = Single(msgspec.structs.replace(step.unit, spec=spec))
    return msgspec.structs.replace(plan, steps=(msgspec.structs.replace(step, action=action),))


def step_of(task: Task, step_id: str, span: ir.Span) -> ir.Step:
    """The step that runs the target of a task."""
    target, dispatch = task.target, task.dispatch
    return ir.Step(
        id=step_id,
        source=span,
        uses=target.uses,
        run=target.run,
        shell=target.shell if target.run is not None else None,
        working_directory=target.working_directory,
        with_=dict(target.arguments) if target.arguments is not None else None,
        command_mode=command_mode(task),
        env=target.env or None,
        unit=ir.UnitOptions(
            engine=dispatch.engine,
            model=dispatch.model,
            llm=dispatch.inference,
            timeout_ms=task.timeout_ms,
            output=dispatch.output,
        ),
    )


def command_mode(task: Task) -> Literal["literal", "stored-ref", "portable-template"] | None:
    """How a prompt of the builtin command is read: as a stored one, as a template, or as it stands."""
    arguments = task.target.arguments
    if task.target.family is not Family.BUILTIN or arguments is None:
        return None
    if "ref" in arguments:
        return "stored-ref"
    templated = "arguments" in arguments or TOKEN in arguments["content"]
    return "portable-template" if templated else "literal"

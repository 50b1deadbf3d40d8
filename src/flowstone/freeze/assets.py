"""A step that uses a stored command, script or task → the unit that it stands for, read now and never again.

Each file that is read here joins the read set of the plan. Engines, timeouts and the like are settled
afterwards, as for every other unit. Workflows are the matter of `composition`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.errors import FreezeError, NotFound
from flowstone.expr.model import Record, Reference
from flowstone.freeze.bindings import Surface, authored, bind
from flowstone.freeze.composition import TASKS, Composition, family_of
from flowstone.freeze.inference import merged, read_inference
from flowstone.freeze.scripts import script_spec
from flowstone.plan.model import Given, Single, Step, Unit
from flowstone.plan.units import AssetTarget, ExecSpec, LiteralEnv, PromptTarget
from flowstone.ports.library import StoredAgent, StoredCommand

AGENTS, COMMANDS, SCRIPTS = "agents", "commands", "scripts"


def stored_unit(step: Step, unit: Unit, target: AssetTarget, composition: Composition) -> Unit:
    """The unit with a prompt, a command or another target in place of a ref.

    NotFound and CompileError tell of the asset, FreezeError of what a step must not ask of it.
    """
    match family_of(target.ref):
        case "commands":
            return msgspec.structs.replace(unit, spec=_prompt(step, target, composition))
        case "scripts":
            script = composition.library.script(target.ref)
            composition.read.append(script.source)
            return msgspec.structs.replace(unit, spec=script_spec(step, target, script))
        case "tasks":
            return _of_task(step, unit, target, composition)
    raise FreezeError(
        f'Step "{step.id}" uses {target.ref}, which is no target.',
        code="COMPOSITION_INVALID",
        hint="Use commands/…, scripts/…, tasks/… or workflows/….",
    )


def _prompt(step: Step, target: AssetTarget, composition: Composition) -> PromptTarget:
    """A stored command as instructions. The step's own wishes go before the command's, these before its agent's."""
    command = composition.library.command(target.ref, (target.arguments or {}).get("arguments", ""))
    composition.read.append(command.source)
    wanted = target.prompt or PromptTarget(content="")
    name = wanted.agent or command.agent
    agent = None if name is None else _agent(name, composition)
    layers = [one for one in (agent, command) if one is not None]
    model = next((one for one in (wanted.model, command.model, agent and agent.model) if one), None)
    return msgspec.structs.replace(
        wanted,
        content=command.content,
        engine=wanted.engine or command.engine or (agent.engine if agent is not None else None),
        model=model,
        own_model=model is not None and (wanted.own_model or wanted.model is None),
        own_llm=merged((*(_inference(one) for one in layers), wanted.own_llm)) or None,
        values=(*wanted.values, *(value for value in target.env if isinstance(value, LiteralEnv))),
        persona=agent.persona if agent is not None else "",
        agent=name if agent is None else None,
        tools=wanted.tools or command.tools or (agent.tools if agent is not None else ()),
    )


def _agent(name: str, composition: Composition) -> StoredAgent | None:
    """The stored agent of a ref or a bare name; None for a name that may be one of the engine's own agents."""
    ref = name if family_of(name) == AGENTS else f"{AGENTS}/{name}"
    try:
        found = composition.library.agent(ref)
    except NotFound as error:
        if ref == name or error.code != NotFound.code:
            raise
        return None
    composition.read.append(found.source)
    return found


def _inference(one: StoredCommand | StoredAgent) -> dict[str, Any]:
    found = read_inference(one.inference) if one.inference is not None else {}
    if isinstance(found, str):
        raise FreezeError(f"{one.ref}: inference {found}.", code="INVALID_FLAG_VALUE")
    return found


def _of_task(step: Step, unit: Unit, target: AssetTarget, composition: Composition) -> Unit:
    """The unit of a task that runs no workflow, with what the step binds to its inputs."""
    task = composition.library.task(target.ref)
    composition.read.append(task.source)
    label = f'Step "{step.id}" ({target.ref})'
    if target.has_arguments and not task.declares_inputs:
        raise FreezeError(
            f"{label}: the task declares no inputs, so it takes no with, not even an empty one.",
            code="COMPOSITION_INVALID",
            hint=f"Leave with out, or declare inputs in {task.ref}.",
        )
    given = bind(Surface(label, task.inputs, "inputs", fills=True), authored(target))
    schemas = {one.name: one.schema for one in task.inputs if isinstance(given.get(one.name), Reference)}
    action = task.plan.steps[0].action
    assert isinstance(action, Single)
    inner = action.unit
    if isinstance(inner.spec, AssetTarget):
        if family_of(inner.spec.ref) == TASKS:
            raise FreezeError(f"{label}: a task does not run another one.", code="COMPOSITION_INVALID")
        inner = stored_unit(step, inner, inner.spec, composition)
    return msgspec.structs.replace(
        inner,
        spec=_with_values(inner.spec, target),
        isolation=unit.isolation,
        task=task.ref,
        redact=task.redact,
        given=Given(Record(tuple(given.items())), schemas) if given else None,
    )


def _with_values(spec: Any, target: AssetTarget) -> Any:
    """The unit of a task with the variables of the step that composes it, which go before the task's own."""
    values = tuple(value for value in target.env if isinstance(value, LiteralEnv))
    if not values:
        return spec
    own = {value.name for value in values}
    match spec:
        case PromptTarget():
            kept = tuple(value for value in spec.values if value.name not in own)
            return msgspec.structs.replace(spec, values=(*kept, *values))
        case ExecSpec():
            bound = tuple(one for one in spec.env if not isinstance(one, LiteralEnv) or one.name not in own)
            return msgspec.structs.replace(spec, env=(*bound, *values))
    raise AssertionError(f"a task becomes a prompt or a command, not {type(spec).__name__}")

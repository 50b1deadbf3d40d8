"""The rules of one step of a document, as the source IR decoder applies them again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flowstone.expr.schema_check import check_schema
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.targets import Family, Refusal, classify_uses
from flowstone.plan import bounds
from flowstone.run.outcome import RETRYABLE
from flowstone.values import clip

_STEP_ID = re.compile(bounds.STEP_ID)
_SHELLS = frozenset({"bash", "sh", "zsh", "pwsh", "powershell", "cmd"})


def check_step(step: ir.Step, path: str) -> Iterator[str]:
    """What is wrong with a step by itself; `path` leads to it."""
    if not _STEP_ID.fullmatch(step.id):
        yield f'{path}.id: "{clip(step.id, 140)}" is no step id'
    targets = [part for part in (step.uses, step.run, step.exec) if part is not None]
    if len(targets) != (0 if step.route is not None else 1):
        yield f"{path}: it must have exactly one of uses, run and exec, or a route and none of them"
    if step.route is not None and (step.map is not None or step.unit is not None or step.inputs):
        yield f"{path}: a route step has no map, unit or inputs"
    yield from _check_uses(step, path)
    yield from _check_run(step, path)
    if step.exec is not None:
        yield from _check_exec(step.exec, step.unit, f"{path}.exec")
    if step.unit is not None:
        yield from _check_unit(step.unit, step.id, f"{path}.unit")
    yield from _check_rest(step, path)


def _check_uses(step: ir.Step, path: str) -> Iterator[str]:
    if step.uses is None:
        if step.with_ is not None or step.command_mode is not None:
            yield f"{path}: with and commandMode go with uses"
        return
    family = classify_uses(step.uses)
    if isinstance(family, Refusal):
        yield f"{path}.uses: {family.message}"
    elif family is Family.BUILTIN:
        yield from _check_builtin(step, path)
    elif step.command_mode is not None:
        yield f"{path}.commandMode: it goes with akm/command"


def _check_builtin(step: ir.Step, path: str) -> Iterator[str]:
    arguments = step.with_ or {}
    texts = all(isinstance(value, str) for value in arguments.values())
    known = set(arguments) <= {"ref", "content", "arguments"}
    if not texts or not known or ("ref" in arguments) == ("content" in arguments):
        yield f"{path}.with: it must hold exactly one of ref and content, and optional arguments, as texts"
        return
    modes = {"stored-ref"} if "ref" in arguments else {"literal", "portable-template"}
    if "arguments" in arguments:
        modes -= {"literal"}
    if step.command_mode not in modes:
        yield f"{path}.commandMode: it does not fit with"


def _check_run(step: ir.Step, path: str) -> Iterator[str]:
    if step.run is None:
        if step.shell is not None or step.working_directory is not None:
            yield f"{path}: shell and workingDirectory go with run"
    elif problem := rules.run_problem(step.run):
        yield f"{path}.run {problem}"
    if step.shell is not None and step.shell not in _SHELLS:
        yield f'{path}.shell: "{clip(step.shell, 80)}" is no supported shell'
    if step.working_directory is not None and (problem := rules.folder_problem(step.working_directory)):
        yield f"{path}.workingDirectory {problem}"
    for name in step.env or {}:
        if problem := rules.env_name_problem(name):
            yield f"{path}.env {problem}"


def _check_exec(exec: ir.Exec, unit: ir.UnitOptions | None, path: str) -> Iterator[str]:
    if not 1 <= len(exec.command) <= bounds.ARGV_ENTRIES:
        yield f"{path}.command: it must have 1 to {bounds.ARGV_ENTRIES} entries"
    for argument in exec.command:
        if problem := rules.argument_problem(argument):
            yield f"{path}.command: an entry {problem}"
    if exec.cwd is not None and (problem := rules.folder_problem(exec.cwd)):
        yield f"{path}.cwd {problem}"
    if len(exec.pass_env) > bounds.PASS_ENV or len(set(exec.pass_env)) != len(exec.pass_env):
        yield f"{path}.passEnv: it must have at most {bounds.PASS_ENV} distinct names"
    for name in exec.pass_env:
        if problem := rules.env_name_problem(name):
            yield f"{path}.passEnv {problem}"
    if unit is not None and (unit.engine or unit.model or unit.llm):
        yield f"{path}: a command names no engine, model or llm"


def _check_unit(unit: ir.UnitOptions, step: str, path: str) -> Iterator[str]:
    if unit.engine is not None and (problem := rules.engine_problem(unit.engine)):
        yield f"{path}.engine {problem}"
    if unit.model is not None and not unit.model.strip():
        yield f"{path}.model: it must not be empty"
    if unit.llm is not None:
        yield from (f"{path}.llm: {message}" for message in rules.llm_faults(unit.llm))
    if isinstance(unit.timeout_ms, int) and not 1 <= unit.timeout_ms <= bounds.TIMEOUT_MS:
        yield f"{path}.timeoutMs: {unit.timeout_ms} is out of bounds"
    if unit.retry is not None:
        if not 0 <= unit.retry.max <= bounds.RETRIES:
            yield f"{path}.retry.max: {unit.retry.max} is out of bounds"
        if not unit.retry.on or not set(unit.retry.on) <= set(RETRYABLE):
            yield f"{path}.retry.on: it must list failure reasons that may be retried"
    if any(not ref.strip() for ref in unit.env):
        yield f"{path}.env: a ref must not be empty"
    if unit.output is not None:
        label = f'Step "{step}" unit "output"'
        yield from (problem.message for problem in check_schema(unit.output, label))


def _check_rest(step: ir.Step, path: str) -> Iterator[str]:
    if len(step.inputs) > bounds.INPUTS:
        yield f"{path}.inputs: there are over {bounds.INPUTS}"
    width = step.map.concurrency if step.map is not None else None
    if width is not None and not 1 <= width <= bounds.CONCURRENCY:
        yield f"{path}.map.concurrency: {width} is out of bounds"
    if step.output is not None:
        yield from (problem.message for problem in check_schema(step.output, f'Step "{step.id}" "output"'))
    if step.route is not None:
        matches = [branch.match for branch in step.route.branches]
        if not 1 <= len(matches) <= bounds.ROUTE_BRANCHES or len(set(matches)) != len(matches):
            yield f"{path}.route: it must have 1 to {bounds.ROUTE_BRANCHES} distinct branches"
    loops = step.gate.max_loops if step.gate is not None else None
    if loops is not None and not 1 <= loops <= bounds.MAX_LOOPS:
        yield f"{path}.gate.maxLoops: {loops} is out of bounds"
    rubric = step.gate.rubric if step.gate is not None else None
    for name, text in (("instructions", step.instructions), ("gate.rubric", rubric)):
        if text is not None and rules.utf8_size(text) > bounds.INSTRUCTION_BYTES:
            yield f"{path}.{name}: it has over 256 KiB"

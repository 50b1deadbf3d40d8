"""Performs agent units and judges: a task for an agent program, run as a command, and its outcome.

The program runs below the guard of the run's commands, so that its end, its time and its streams
are theirs; what is asked and how the answer is judged are the rules of `dispatchers.answers`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from flowstone.dispatchers.agent.harness import Harness, Task
from flowstone.dispatchers.agent.registry import HARNESSES, SERVED, harness_of
from flowstone.dispatchers.agent.result import not_begun, over_time, refused, reply_of
from flowstone.dispatchers.answers.conversation import Conversation, Messages, Reply
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.dispatchers.process.failures import CannotStart
from flowstone.plan.units import AgentSpec, CwdRule, EnvironmentRule, ExecSpec, LiteralEnv
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason, failed

if TYPE_CHECKING:
    from flowstone.dispatchers.agent.served.dispatcher import ServedAgents

ARGUMENT_BYTES = 131_071
"""Bytes of one argument that Linux passes on, its NUL left out."""


class AgentDispatcher:
    """Runs agent programs by way of `commands`, which the caller closes. `env` is the host's."""

    def __init__(self, commands: ProcessDispatcher, env: Mapping[str, str]) -> None:
        self._commands = commands
        self._env = env
        self._served: ServedAgents | None = None

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, AgentSpec)
        if spec.platform in SERVED:
            return await self._servers().perform(dispatch)
        harness = harness_of(spec.platform)
        if harness is None:
            known = ", ".join(sorted((*HARNESSES, *SERVED)))
            text = (
                f'engine "{spec.engine}": the platform {spec.platform} cannot be dispatched (those that can: {known})'
            )
            return failed(Reason.DISPATCH_ERROR, text, ran=False)
        secrets = secrets_of(harness, self._env)
        try:
            redactor = self._commands.redactor_of(spec.env, secrets)
        except CannotStart as error:
            return not_begun(spec, error, Redactor())
        call = _Call(dispatch, spec, harness, secrets, redactor, _deadline(dispatch.timeout_ms))
        if dispatch.isolation == "none":
            return await self._held(call, None)
        from flowstone.dispatchers.process.worktrees import Stopped

        try:
            return await self._commands.isolated(dispatch, lambda workspace: self._held(call, workspace))
        except Stopped as stopped:
            return stopped.outcome
        except CannotStart as error:
            return not_begun(spec, error, redactor)

    async def close(self) -> None:
        """End the servers; the commands are the caller's."""
        if self._served is not None:
            await self._served.close()

    def _servers(self) -> ServedAgents:
        if self._served is None:
            from flowstone.dispatchers.agent.served.dispatcher import ServedAgents

            self._served = ServedAgents(self._commands, self._env)
        return self._served

    async def _held(self, call: _Call, workspace: Workspace | None) -> Outcome:
        """The whole conversation, its correction included, in one place."""

        async def ask(messages: Messages) -> Reply | Outcome:
            return await self._ask(call, messages, workspace)

        return await Conversation(call.dispatch, ask, call.redactor).held()

    async def _ask(self, call: _Call, messages: Messages, workspace: Workspace | None) -> Reply | Outcome:
        left = call.milliseconds_left()
        if left is not None and left <= 0:
            return call.over_time(Outcome(Reason.TIMEOUT))
        with _schema_file(call) as schema_file:
            command = _command(call, task_of(call, messages, schema_file), left, self._env)
            problem = _too_long(command)
            if problem is not None:
                return refused(call.spec, Reason.DISPATCH_ERROR, problem)
            try:
                performed, redactor = await self._commands.captured(command, call.secrets, workspace)
            except CannotStart as error:
                return not_begun(call.spec, error, call.redactor)
        found = reply_of(performed, call.spec, call.harness, redactor)
        if isinstance(found, Outcome) and found.reason is Reason.TIMEOUT:
            return call.over_time(found)
        return found


class _Call(msgspec.Struct, frozen=True):
    """What the exchanges of one attempt share; `deadline` is on the loop's clock."""

    dispatch: Dispatch
    spec: AgentSpec
    harness: Harness
    secrets: tuple[str, ...]
    redactor: Redactor
    deadline: float | None

    def milliseconds_left(self) -> int | None:
        if self.deadline is None:
            return None
        return round((self.deadline - asyncio.get_running_loop().time()) * 1000)

    def over_time(self, outcome: Outcome) -> Outcome:
        return over_time(self.spec, self.dispatch.timeout_ms or 0, outcome)


def secrets_of(harness: Harness, env: Mapping[str, str]) -> tuple[str, ...]:
    """The values that a program is passed and that must never be shown."""
    return tuple(env[name] for name in harness.passed if name in env and name not in harness.plain)


def task_of(call: _Call, messages: Messages, schema_file: str | None = None) -> Task:
    """The messages as a program takes them: one prompt, and the system text of a judge or a persona."""
    dispatch, spec = call.dispatch, call.spec
    apart = spec.judges or not call.harness.persona_in_prompt
    system = [text for role, text in messages if role == "system" and apart]
    return Task(
        prompt="\n\n".join(text for role, text in messages if role != "system" or not apart),
        system="\n\n".join(system) if system else None,
        model=spec.model,
        agent=spec.agent,
        args=spec.args,
        structured=dispatch.has_schema and not spec.judges,
        schema_file=schema_file,
        tools=spec.tools,
    )


def _command(call: _Call, task: Task, timeout_ms: int | None, env: Mapping[str, str]) -> Dispatch:
    """The program as a command of the unit; in a worktree it works there, whatever its engine says."""
    spec, harness = call.spec, call.harness
    own_place = spec.workspace is None or call.dispatch.isolation != "none"
    argv = (_home(spec.bin or harness.program, env), *harness.arguments(task))
    command = ExecSpec(
        argv=argv,
        cwd=None if own_place else _home(spec.workspace or "", env),
        cwd_rule=CwdRule.CONTAINED if own_place else CwdRule.RUN_FOLDER,
        env=(*(LiteralEnv(name, value, secret=False) for name, value in harness.variables(task)), *spec.env),
        environment=EnvironmentRule(base=tuple(dict.fromkeys((*spec.passed, *harness.passed))), context=spec.context),
    )
    return msgspec.structs.replace(
        call.dispatch,
        spec=command,
        timeout_ms=timeout_ms,
        context=_marks(call.dispatch, spec.context),
        schema=None,
        has_schema=False,
        messages=(),
    )


def _marks(dispatch: Dispatch, prefix: str | None) -> tuple[tuple[str, str], ...]:
    """Where in a run a program works; all that it starts is known by them when it has to end."""
    names = {"RUN_ID": dispatch.run, "STEP_ID": dispatch.step, "UNIT_ID": dispatch.unit}
    return () if prefix is None else tuple((prefix + name, value) for name, value in names.items())


def _too_long(command: Dispatch) -> str | None:
    """Why the system would refuse a command for its longest argument, which is the prompt."""
    assert isinstance(command.spec, ExecSpec)
    longest = max(len(str(word).encode("utf-8", "replace")) for word in command.spec.argv)
    if longest <= ARGUMENT_BYTES:
        return None
    return (
        f"its prompt has {longest} bytes, and the system passes at most {ARGUMENT_BYTES} in one argument of a program "
        "(Linux: MAX_ARG_STRLEN, 32 pages). Let the step that makes the data write a file and hand on its path, "
        "or use an engine that is not asked by arguments (opencode-sdk, or kind llm)"
    )


def _home(path: str, env: Mapping[str, str]) -> str:
    """A path that begins with `~/`, in the home folder."""
    return os.path.join(env["HOME"], path[2:]) if path.startswith("~/") and env.get("HOME") else path


@contextmanager
def _schema_file(call: _Call) -> Iterator[str | None]:
    """A file with the schema for as long as the program runs, where the program takes one."""
    dispatch = call.dispatch
    if not (call.harness.takes_schema and dispatch.has_schema and not call.spec.judges):
        yield None
        return
    from tempfile import NamedTemporaryFile

    from flowstone.values import canonical_bytes

    with NamedTemporaryFile(prefix="flowstone-schema-", suffix=".json") as file:
        file.write(canonical_bytes(dispatch.schema))
        file.flush()
        yield file.name


def _deadline(timeout_ms: int | None) -> float | None:
    return None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000

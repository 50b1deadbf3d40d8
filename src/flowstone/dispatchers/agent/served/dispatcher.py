"""Performs the units of agents that are served: a server for all units of a drive that can share one.

Units share a server when the program, the environment and the model engine behind it are the same;
each has a session of its own, in the folder where it works.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

import msgspec

from flowstone.dispatchers.agent.result import not_begun, over_time, refused
from flowstone.dispatchers.agent.served.provider import KEY_VARIABLE, NoModel, configuration, model_of
from flowstone.dispatchers.agent.served.server import Announcement, Server, ServerFailure
from flowstone.dispatchers.agent.served.turn import GivenUp, Session
from flowstone.dispatchers.answers.conversation import Conversation, Messages, Reply
from flowstone.dispatchers.llm.credentials import MissingKey, key_of
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.dispatchers.process.failures import CannotStart
from flowstone.plan.units import AgentSpec, CaptureRule, EnvironmentRule, ExecSpec, LiteralEnv
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason

PROGRAM = "opencode"
PASSED = ("OPENCODE_API_KEY", "OPENCODE_CONFIG")
SECRET = ("OPENCODE_API_KEY",)
KEPT_BYTES = 64 * 1024
"""Of what a server prints."""


class Setup(msgspec.Struct, frozen=True):
    """What a server is started with; units with an equal one share it."""

    argv: tuple[str, ...]
    passed: tuple[str, ...]
    bound: tuple[tuple[str, str], ...]
    configuration: str
    key: str | None
    context: str | None


class ServedAgents:
    """Talks to agents by their servers, which `commands` runs. `env` is the host's."""

    def __init__(self, commands: ProcessDispatcher, env: Mapping[str, str]) -> None:
        self._commands = commands
        self._env = env
        self._servers: dict[Setup, asyncio.Task[Server]] = {}

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, AgentSpec)
        secrets = tuple(self._env[name] for name in SECRET if name in self._env)
        try:
            bound = self._commands.variables_of(spec.env)
            key = None if spec.fallback is None else key_of(spec.fallback.credential, self._env)
            known = secrets if key is None else (*secrets, key)
            redactor = self._commands.redactor_of(spec.env, known)
            model_of(spec)
        except CannotStart as error:
            return not_begun(spec, error, self._commands.redactor_of((), secrets))
        except (MissingKey, NoModel) as problem:
            return refused(spec, Reason.DISPATCH_ERROR, str(problem))
        argv = (_home(spec.bin or PROGRAM, self._env), *spec.args, "serve", "--hostname", "127.0.0.1")
        passed = tuple(dict.fromkeys((*spec.passed, *PASSED)))
        setup = Setup((*argv, "--port", "0"), passed, bound, configuration(spec, key), key, spec.context)
        return await self._within(_Call(dispatch, spec, setup, known, redactor))

    async def close(self) -> None:
        """End the servers; closing twice does nothing."""
        tasks, self._servers = list(self._servers.values()), {}
        for task in tasks:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and task.exception() is None:
                await task.result().close()

    async def _within(self, call: _Call) -> Outcome:
        from flowstone.dispatchers.process.worktrees import Stopped

        dispatch, spec = call.dispatch, call.spec
        if dispatch.isolation == "none":
            place = self._commands.folder
            own = place if spec.workspace is None else os.path.join(place, _home(spec.workspace, self._env))
            return await self._held(call, own)

        async def work(workspace: Workspace) -> Outcome:
            return await self._held(call, workspace.base)

        try:
            return await self._commands.isolated(dispatch, work)
        except Stopped as stopped:
            return stopped.outcome
        except CannotStart as error:
            return not_begun(spec, error, call.redactor)

    async def _held(self, call: _Call, folder: str) -> Outcome:
        """The whole conversation, within the unit's time."""
        session: list[Session] = []

        async def ask(messages: Messages) -> Reply | Outcome:
            return await self._ask(call, folder, messages, session)

        conversation = Conversation(call.dispatch, ask, call.redactor)
        timeout = call.dispatch.timeout_ms
        try:
            async with asyncio.timeout(None if timeout is None else timeout / 1000):
                return await conversation.held()
        except TimeoutError:
            return conversation.ended(over_time(call.spec, timeout or 0, Outcome(Reason.TIMEOUT)))

    async def _ask(self, call: _Call, folder: str, messages: Messages, kept: list[Session]) -> Reply | Outcome:
        """One turn; the first one opens the session that a correction goes on with."""
        try:
            if not kept:
                kept.append(Session(await self._server(call), folder, _fields(call.spec, messages)))
            prompt = "\n\n".join(text for role, text in messages if role != "system")
            turn = await kept[0].turn(call.dispatch.unit, prompt)
        except CannotStart as error:
            return not_begun(call.spec, error, call.redactor)
        except GivenUp as problem:
            return _failed(call, problem.reason, str(problem), kept)
        except ServerFailure as problem:
            reason = Reason.SPAWN_FAILED if problem.status is None else Reason.DISPATCH_ERROR
            return _failed(call, reason, f"its server cannot be used: {problem}", kept)
        text = turn.text if turn.text.strip() else ""
        return Reply(text, turn.tokens, turn.tokens_in, turn.tokens_out, session=kept[0].id)

    async def _server(self, call: _Call) -> Server:
        """The server of a setup, started when it is first needed or when the one before has ended."""
        task = self._servers.get(call.setup)
        if task is None or _useless(task):
            task = self._servers[call.setup] = asyncio.ensure_future(self._started(call))
        return await asyncio.shield(task)

    async def _started(self, call: _Call) -> Server:
        import secrets

        setup, password = call.setup, secrets.token_hex(16)
        own = {
            "OPENCODE_CONFIG_CONTENT": setup.configuration,
            "OPENCODE_SERVER_PASSWORD": password,
            **({} if setup.key is None else {KEY_VARIABLE: setup.key}),
        }
        command = ExecSpec(
            argv=setup.argv,
            env=tuple(LiteralEnv(name, value, secret=False) for name, value in (*setup.bound, *own.items())),
            environment=EnvironmentRule(base=setup.passed, context=setup.context),
            capture=CaptureRule(limit=KEPT_BYTES),
        )
        program = msgspec.structs.replace(
            call.dispatch,
            spec=command,
            timeout_ms=None,
            context=_marks(call),
            schema=None,
            has_schema=False,
            messages=(),
        )
        announcement = Announcement()
        secret = (*call.secrets, *(value for _, value in setup.bound), password)
        service = self._commands.service(program, secret, announcement.feed)
        try:
            return Server(service, await announcement.address(service), password)
        except BaseException:
            await service.end()
            raise


class _Call(msgspec.Struct, frozen=True):
    """What the turns of one attempt share."""

    dispatch: Dispatch
    spec: AgentSpec
    setup: Setup
    secrets: tuple[str, ...]
    redactor: Redactor


def _marks(call: _Call) -> tuple[tuple[str, str], ...]:
    """By which all that a server starts is known; it works for many units, so it has a name of its own."""
    import secrets

    prefix = call.setup.context
    names = {"RUN_ID": call.dispatch.run, "UNIT_ID": f"server:{secrets.token_hex(8)}"}
    return () if prefix is None else tuple((prefix + name, value) for name, value in names.items())


def _fields(spec: AgentSpec, messages: Messages) -> dict[str, object]:
    """The fields of a message beside its text."""
    system = "\n\n".join(text for role, text in messages if role == "system")
    model = model_of(spec)
    chosen = None if model is None else {"providerID": model[0], "modelID": model[1]}
    fields = {"model": chosen, "agent": spec.agent, "system": system or None}
    return {name: value for name, value in fields.items() if value is not None}


def _useless(task: asyncio.Task[Server]) -> bool:
    """Whether a server could not be started, or has ended since."""
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().service.over


def _failed(call: _Call, reason: Reason, text: str, kept: list[Session]) -> Outcome:
    error = f'engine "{call.spec.engine}": the agent failed: {call.redactor.text(text)}'
    return Outcome(reason, error=error, diagnostic=error, session=kept[0].id if kept else None)


def _home(path: str, env: Mapping[str, str]) -> str:
    """A path that begins with `~/`, in the home folder."""
    return os.path.join(env["HOME"], path[2:]) if path.startswith("~/") and env.get("HOME") else path

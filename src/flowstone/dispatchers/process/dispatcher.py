"""Performs exec units: prepares a command, has the guard run it, and makes its end an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.dispatchers.process.attempt import Attempt, Command
from flowstone.dispatchers.process.cwd import working_directory
from flowstone.dispatchers.process.environment import Environments
from flowstone.dispatchers.process.failures import CannotStart
from flowstone.dispatchers.process.guard_client import Guard
from flowstone.dispatchers.process.lines import Lines
from flowstone.dispatchers.process.result import Output, Performed, outcome_of, refused
from flowstone.errors import DispatchSetupError
from flowstone.plan.units import EnvBinding, ExecSpec, ScriptFile
from flowstone.ports.dispatcher import Dispatch, OutputLines, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason, failed

if TYPE_CHECKING:
    from flowstone.dispatchers.process.scripts import Scripts
    from flowstone.dispatchers.process.worktrees import Worktrees


class Started(msgspec.Struct, frozen=True):
    """A command that the guard was asked for."""

    dispatch: Dispatch
    redactor: Redactor
    attempt: Attempt
    guard: Guard
    cwd: str
    lines: tuple[Lines, ...]
    script: str | None = None
    """The file that was written for it alone."""


class Service:
    """A program that runs until it is ended, such as a server; it is below the guard as every command is."""

    def __init__(self, started: Started, settle: Callable[[Started], None]) -> None:
        self._started = started
        self._settle = settle
        self.redactor = started.redactor

    @property
    def over(self) -> bool:
        return self._started.attempt.finished

    async def ended(self) -> Performed:
        """Wait for it to end by itself; a cancellation of the wait leaves it running."""
        while not self._started.attempt.finished:
            await self._started.attempt.finish_line()
        return _performed(self._started)

    async def end(self) -> None:
        """End it with all that it started."""
        await self._started.attempt.end()
        self._settle(self._started)


class ProcessDispatcher:
    """Runs commands in one workspace, below one guard process, on the running event loop.

    `env_values` reads an env asset when a unit that binds it is dispatched. `on_lines` gets the
    lines that a command prints, `on_notice` what people should know meanwhile. `lease_fd` is held by the
    guard as well, so that the run's lock stays taken until the last command is gone.
    """

    def __init__(
        self,
        workspace: Workspace,
        host_env: Mapping[str, str],
        redactor: Redactor,
        env_values: Callable[[str], Mapping[str, str | None]],
        on_lines: OutputLines | None = None,
        lease_fd: int | None = None,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._host_env = host_env
        self._redactor = redactor
        self._environments = Environments(workspace, host_env, env_values)
        self._on_lines = on_lines
        self._lease_fd = lease_fd
        self._on_notice = on_notice
        self._guard: Guard | None = None
        self._running: set[Attempt] = set()
        self._closed = False
        self._extended: dict[tuple[str, ...], Redactor] = {}
        self._worktrees: Worktrees | None = None
        self._scripts: Scripts | None = None

    @property
    def folder(self) -> str:
        """Where commands work that name no folder of their own."""
        return self._workspace.base

    def start(self) -> None:
        """Start the guard ahead of the first command, so that it boots meanwhile."""
        self._live_guard()

    async def perform(self, dispatch: Dispatch) -> Outcome:
        """Run one command to its end. Raises DispatchSetupError after `close`, or without a guard."""
        if dispatch.isolation == "none":
            return await self._perform(dispatch, self._workspace)
        try:
            return await self.isolated(dispatch, lambda workspace: self._perform(dispatch, workspace))
        except CannotStart as error:
            return refused(dispatch, error, self._redactor)

    async def isolated(self, dispatch: Dispatch, work: Callable[[Workspace], Awaitable[Outcome]]) -> Outcome:
        """Do the work of an attempt in a worktree of its own; CannotStart where there can be none."""
        if self._closed:
            raise DispatchSetupError("the process dispatcher is closed")
        if self._worktrees is None:
            from flowstone.dispatchers.process.worktrees import Worktrees

            self._worktrees = Worktrees(self._workspace, self._host_env)
        return await self._worktrees.within(dispatch, work)

    async def captured(
        self, dispatch: Dispatch, secrets: tuple[str, ...] = (), workspace: Workspace | None = None
    ) -> tuple[Performed, Redactor]:
        """Run one command for a dispatcher that reads its output itself; nothing is redacted in it yet.

        `workspace` is where `isolated` lets it work. The redactor knows `secrets` and those of the
        command's environment. Raises CannotStart, and DispatchSetupError as `perform` does.
        """
        started = self._started(dispatch, secrets, workspace or self._workspace)
        return await self._ended(started), started.redactor

    def service(self, dispatch: Dispatch, secrets: tuple[str, ...], listen: Callable[[bytes], None]) -> Service:
        """Start a program that runs until it is ended; `listen` gets what it prints to stdout, as it comes.

        Raises CannotStart, redacted, and DispatchSetupError as `perform` does.
        """
        return Service(self._started(dispatch, secrets, self._workspace, listen), self._settle)

    def variables_of(self, bindings: tuple[EnvBinding, ...]) -> tuple[tuple[str, str], ...]:
        """What the bindings bring to a command, read anew; CannotStart where they cannot be read."""
        return self._environments.variables(bindings)

    def redactor_of(self, bindings: tuple[EnvBinding, ...], secrets: tuple[str, ...]) -> Redactor:
        """One that knows `secrets` and the values that the bindings would bring to a command.

        Raises CannotStart, redacted, where they cannot be read.
        """
        try:
            return self._knowing(secrets + self._environments.secrets(bindings))
        except CannotStart as error:
            raise error.redacted(self._knowing(secrets)) from error

    async def _perform(self, dispatch: Dispatch, workspace: Workspace) -> Outcome:
        started = self._start(dispatch, workspace)
        if isinstance(started, Outcome):
            return started
        return outcome_of(await self._ended(started), started.redactor)

    async def _ended(self, started: Started) -> Performed:
        try:
            await started.attempt.settled()
        finally:
            self._settle(started)
        return _performed(started)

    def begin(self, dispatch: Dispatch, done: Callable[[Outcome | Exception], None]) -> Callable[[], None]:
        """As `perform`, without a task (see ports.dispatcher.Beginner)."""
        if dispatch.isolation != "none":
            return _as_task(self._stoppable(dispatch), done)
        started: Started | Outcome | Exception
        try:
            started = self._start(dispatch, self._workspace)
        except DispatchSetupError as error:
            started = error
        if not isinstance(started, Started):
            asyncio.get_running_loop().call_soon(done, started)
            return _nothing

        def finished() -> None:
            self._settle(started)
            try:
                result: Outcome | Exception = outcome_of(_performed(started), started.redactor)
            except Exception as error:
                result = error
            done(result)

        started.attempt.on_finish = finished
        return started.attempt.abort

    async def _stoppable(self, dispatch: Dispatch) -> Outcome:
        """As `perform`, but what is ended early is an outcome, with what became of its worktree."""
        from flowstone.dispatchers.process.worktrees import Stopped

        try:
            return await self.perform(dispatch)
        except Stopped as stopped:
            return stopped.outcome

    def push(self) -> None:
        """Have the guard start what was begun."""
        if self._guard is not None:
            self._guard.flush()

    async def close(self) -> None:
        """End what still runs and let the guard go; closing twice does nothing."""
        self._closed = True
        for attempt in list(self._running):
            await attempt.end()
        if self._worktrees is not None:
            self._worktrees.close()
            self._worktrees = None
        if self._guard is not None:
            await self._guard.close()
            self._guard = None
            self._tell_survivors()

    def _start(self, dispatch: Dispatch, workspace: Workspace) -> Started | Outcome:
        """Ask the guard for a dispatch's command, or the outcome of one that cannot be started."""
        try:
            return self._started(dispatch, (), workspace)
        except CannotStart as error:
            return refused(dispatch, error, self._redactor)

    def _started(
        self,
        dispatch: Dispatch,
        secrets: tuple[str, ...],
        workspace: Workspace,
        listen: Callable[[bytes], None] | None = None,
    ) -> Started:
        """Ask the guard for a dispatch's command; CannotStart, redacted, says why it cannot be started."""
        if self._closed:
            raise DispatchSetupError("the process dispatcher is closed")
        spec = dispatch.spec
        assert isinstance(spec, ExecSpec)
        redactor = self._knowing(secrets)
        try:
            environment, bound = self._environments.build(spec.environment, spec.env, dispatch.context)
            redactor = self._knowing(secrets + bound)
            command = Command(
                argv=tuple(_argument(spec, index) for index in range(len(spec.argv))),
                environment=environment,
                cwd=working_directory(_text(spec.cwd), spec.cwd_rule, workspace),
                marks=_marks(spec, dispatch),
            )
            if spec.script is not None:
                return self._scripted(dispatch, command, redactor, spec.script)
            return self._attempt(dispatch, spec, command, redactor, listen)
        except CannotStart as error:
            raise error.redacted(redactor) from error

    def _scripted(self, dispatch: Dispatch, command: Command, redactor: Redactor, script: ScriptFile) -> Started:
        """Start a stored script, from a file that goes when its command has ended or cannot be started."""
        from flowstone.dispatchers.process.scripts import Scripts, interpreter_of, remove_script

        spec = dispatch.spec
        assert isinstance(spec, ExecSpec)
        if self._scripts is None:
            self._scripts = Scripts()
        path = self._scripts.write(script, dispatch.run)
        program = interpreter_of(spec, command.environment)
        command = msgspec.structs.replace(command, argv=(program, *command.argv[1:], path))
        try:
            started = self._attempt(dispatch, spec, command, redactor, None)
        except BaseException:
            remove_script(path)
            raise
        return msgspec.structs.replace(started, script=path)

    def _attempt(
        self,
        dispatch: Dispatch,
        spec: ExecSpec,
        command: Command,
        redactor: Redactor,
        listen: Callable[[bytes], None] | None,
    ) -> Started:
        capture = spec.capture
        lines = self._lines(dispatch, redactor) if listen is None else None
        listeners = (lines[0].feed, lines[1].feed) if lines else None
        try:
            guard = self._live_guard()
            attempt = Attempt(
                guard,
                command,
                limit=capture.limit + 4 + 4 * redactor.longest,
                grace_s=capture.grace_ms / 1000,
                timeout_s=None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000,
                on_bytes=listeners if listen is None else (listen, _ignore),
            )
        except OSError as error:
            text = f'"{command.argv[0]}" cannot be started: no pipe for its output ({error.strerror})'
            raise CannotStart(Reason.SPAWN_FAILED, text) from None
        self._running.add(attempt)
        attempt.on_wait = partial(self._tell_wait, dispatch.unit)
        return Started(dispatch, redactor, attempt, guard, command.cwd, lines or ())

    def _tell_wait(self, unit: str, seconds: float, holders: tuple[str, ...]) -> None:
        if self._on_notice is not None:
            who = ", ".join(holders) or "a process"
            text = f'unit "{unit}": its command has ended; its output is waited for up to {seconds:g}s, '
            self._on_notice(f"{text}as what it left running still holds it: {who}")

    def _tell_survivors(self) -> None:
        """Name what the commands of a run with a folder of its own have left running: its path is in their PATH."""
        folder = self._workspace.shim_folder
        if folder is None or self._on_notice is None:
            return
        from flowstone.dispatchers.process.survivors import bearers

        found = bearers(b"\0PATH=" + os.fsencode(folder) + b":") or ()
        if found:
            self._on_notice(f"left running by its commands, and not ended with the run: {', '.join(found)}")

    def _settle(self, started: Started) -> None:
        self._running.discard(started.attempt)
        for line in started.lines:
            line.finish()
        if started.script is not None:
            from flowstone.dispatchers.process.scripts import remove_script

            remove_script(started.script)

    def _live_guard(self) -> Guard:
        if self._guard is None or not self._guard.alive:
            self._guard = Guard(self._lease_fd, self._host_env)
        return self._guard

    def _lines(self, dispatch: Dispatch, redactor: Redactor) -> tuple[Lines, Lines] | None:
        on_lines = self._on_lines
        if on_lines is None:
            return None

        def emit(lines: list[str]) -> None:
            with contextlib.suppress(Exception):
                on_lines(dispatch.step, dispatch.unit, lines)

        return Lines(redactor, emit), Lines(redactor, emit)

    def _knowing(self, secrets: tuple[str, ...]) -> Redactor:
        """The run's redactor with a unit's own secrets; units of a fan-out share theirs."""
        if not secrets:
            return self._redactor
        redactor = self._extended.get(secrets)
        if redactor is None:
            if len(self._extended) > 64:
                self._extended.clear()
            redactor = self._extended[secrets] = self._redactor.extended(secrets)
        return redactor


def _performed(started: Started) -> Performed:
    attempt = started.attempt
    if attempt.ending.guard_lost and not started.guard.heard:
        raise DispatchSetupError("the guard process ended before it could start a command")
    stdout = Output(attempt.out.kept, attempt.out.total)
    stderr = Output(attempt.err.kept, attempt.err.total)
    return Performed(started.dispatch, attempt.ending, started.cwd, stdout, stderr)


def _as_task(work: Coroutine[Any, Any, Outcome], done: Callable[[Outcome | Exception], None]) -> Callable[[], None]:
    """Perform an attempt that waits for more than its command; what is returned ends it."""
    task = asyncio.get_running_loop().create_task(work)

    def ended(task: asyncio.Task[Outcome]) -> None:
        if task.cancelled():
            done(failed(Reason.ABORTED, "the run was stopped"))
            return
        error = task.exception()
        if error is None or isinstance(error, Exception):
            done(error or task.result())

    def end() -> None:
        task.cancel()

    task.add_done_callback(ended)
    return end


def _ignore(data: bytes) -> None:
    """What nobody listens to."""


def _nothing() -> None:
    """What cannot be started need not be ended."""


def _argument(spec: ExecSpec, index: int) -> str:
    argument = str(spec.argv[index])
    if "\0" in argument:
        what = "the program's name" if index == 0 else f'argument {index} of "{spec.argv[0]}"'
        raise CannotStart(Reason.SPAWN_FAILED, f"{what} holds a NUL character, which no command can be given")
    if not argument.isascii():
        try:
            argument.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            text = f"argument {index} holds half of a character (a lone surrogate)"
            raise CannotStart(Reason.SPAWN_FAILED, text) from None
    if index == 0 and not argument:
        raise CannotStart(Reason.SPAWN_FAILED, "the program's name is empty")
    return argument


def _text(cwd: object) -> str | None:
    return None if cwd is None else str(cwd)


def _marks(spec: ExecSpec, dispatch: Dispatch) -> tuple[bytes, ...]:
    """The context variables by which a command's descendants are known wherever they hide."""
    prefix = spec.environment.context
    if prefix is None:
        return ()
    names = (f"{prefix}RUN_ID", f"{prefix}UNIT_ID")
    return tuple(f"{name}={value}".encode() for name, value in dispatch.context if name in names)

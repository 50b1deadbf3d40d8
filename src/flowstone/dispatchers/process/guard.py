"""The guard: one small process per driver that spawns its commands and ends them when it is gone.

A driver starts this file as a script, holds the other end of its socket and reads `Guard` in
`guard_client` for what the two say to each other. When the socket closes, for whatever reason,
the guard ends every command that still runs, reaps it and exits. It imports little, because each
run waits for its start.
"""

from __future__ import annotations

# The modules behind `signal` and `socket`: those two import enum and double the start of a guard.
import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import errno
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

GRACE_S = 0.5
"""Seconds between TERM and KILL for the commands of a driver that is gone."""
KILL_WAIT_S = 1.0
"""Seconds that killed processes get to vanish before they are reported as left over."""
TICK_S = 0.02
"""Seconds between two looks at commands that are being ended."""
SPAWNED_S = 0.002
"""Seconds that the news of a spawn waits for the news of its end, to wake the driver only once."""
_RECEIVED_BYTES = 1 << 16
"""What is taken from the driver at a time: a larger buffer would be mapped anew by the system each time."""
SOCKET_FD = 3
LEASE_FD = 4

_RESET_NAMES = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGXFSZ", "SIGCHLD", "SIGTSTP"),
    *("SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH", "SIGCONT"),
)
_RESET = tuple(getattr(signal, name) for name in _RESET_NAMES if hasattr(signal, name))
"""Signals whose default every command gets back, whatever its driver or the guard ignore."""
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_HAS_PROC = os.path.exists("/proc/self/stat")
_DRIVER = os.getppid()
_HOLDS_DEAD = hasattr(os, "waitid")


class Command:
    """A command from its spawn until the driver releases it.

    Its leader is left unreaped until then where the system allows, so that neither its process id
    nor its group can come to mean another process while a signal may still be sent.
    """

    def __init__(self, key: int, pid: int, marks: tuple[bytes, ...]) -> None:
        self.key = key
        self.pid = pid
        self.marks = marks
        self.status: int | None = None
        self.reaped = False
        self.signal: int | None = None
        self.deadline = 0.0
        self.victims: dict[int, str] = {}


class Server:
    """Serves one driver on `sock` until it goes away."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.inbox = bytearray()
        self.fds: list[int] = []
        self.commands: dict[int, Command] = {}
        self.kept: dict[bytes, bytes] = {}
        self.replies: list[tuple[Any, ...]] = []
        self.urgent = False
        self.driver_gone = False
        self.wake, write_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(write_end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def run(self) -> None:
        self.reply("ready", -1)
        self.send_replies()
        while self.commands or not self.driver_gone:
            ending = any(c.signal is not None for c in self.commands.values())
            sources: list[Any] = [self.wake] if self.driver_gone else [self.sock, self.wake]
            timeout = TICK_S if ending else SPAWNED_S if self.replies else None
            ready = select.select(sources, (), (), timeout)[0]
            if self.sock in ready:
                self.receive()
            if self.wake in ready:
                self.note_exits()
            if ending or self.driver_gone:
                self.go_on_ending()
            if self.urgent or not ready:
                self.send_replies()

    def receive(self) -> None:
        """Take what the driver sent and obey each whole request; pipe ends come along with them."""
        try:
            data, fds = _receive(self.sock)
        except OSError:
            data, fds = b"", []
        self.fds += fds
        if not data:
            self.lose_driver()
            return
        inbox = self.inbox
        inbox += data
        start = 0
        while len(inbox) - start >= 4:
            end = start + 4 + int.from_bytes(inbox[start : start + 4], "big")
            if len(inbox) < end:
                break
            self.obey(marshal.loads(inbox[start + 4 : end]))
            start = end
        del inbox[:start]

    def obey(self, request: tuple[Any, ...]) -> None:
        match request:
            case ("spawn", key, argv, env, cwd, marks):
                self.spawn(key, argv, env, cwd, marks)
            case ("keep", name, value):
                self.kept[name] = value
            case ("end", key, grace):
                self.end(key, grace)
            case ("release", key):
                self.release(key)

    def spawn(self, key: int, argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, marks: tuple[bytes, ...]) -> None:
        out, err = self.fds.pop(0), self.fds.pop(0)
        try:
            whole = {name: self.kept[name] if value is None else value for name, value in env.items()}
            pid = launch(argv, whole, cwd, out, err)
        except LaunchFailed as failure:
            self.reply("failed", key, failure.number, failure.which)
        else:
            self.commands[key] = Command(key, pid, marks)
            self.replies.append(("spawned", key, pid))
        finally:
            os.close(out)
            os.close(err)

    def note_exits(self) -> None:
        """Report leaders that have exited; `waitid` leaves them unreaped."""
        os.read(self.wake, 512)
        for command in self.commands.values():
            if command.status is None:
                command.status = _exit_status(command)
                if command.status is not None:
                    self.exited(command)

    def exited(self, command: Command) -> None:
        """Report an end; the news of the spawn, when it still waits, is dropped for it."""
        if ("spawned", command.key, command.pid) in self.replies:
            self.replies.remove(("spawned", command.key, command.pid))
        self.reply("exited", command.key, command.status)

    def release(self, key: int) -> None:
        """Forget a command whose outcome is known; what it left running stays."""
        command = self.commands.pop(key, None)
        if command is not None:
            _reap(command)

    def end(self, key: int, grace: float) -> None:
        """Begin the ladder: TERM now, KILL after `grace` seconds, "ended" when all are gone."""
        command = self.commands.get(key)
        if command is not None and command.signal is None:
            command.signal = signal.SIGTERM
            command.deadline = time.monotonic() + grace
            strike(command, Processes())

    def go_on_ending(self) -> None:
        now = time.monotonic()
        processes = Processes()
        for command in list(self.commands.values()):
            if command.signal is None:
                continue
            if not alive(command, processes):
                self.finish(command, ())
            elif now >= command.deadline and command.signal == signal.SIGTERM:
                command.signal = signal.SIGKILL
                command.deadline = now + KILL_WAIT_S
                strike(command, processes)
            elif now >= command.deadline:
                self.finish(command, living(command))

    def finish(self, command: Command, leftovers: Iterable[int]) -> None:
        if command.status is None:
            command.status = _exit_status(command)
        self.reply("ended", command.key, command.status, tuple(leftovers))
        self.release(command.key)

    def lose_driver(self) -> None:
        self.driver_gone = True
        for fd in self.fds:
            os.close(fd)
        for key in list(self.commands):
            self.end(key, GRACE_S)

    def reply(self, *reply: Any) -> None:
        self.replies.append(reply)
        self.urgent = True

    def send_replies(self) -> None:
        if self.replies and not self.driver_gone:
            frames = [marshal.dumps(reply) for reply in self.replies]
            try:
                self.sock.sendall(b"".join(len(f).to_bytes(4, "big") + f for f in frames))
            except OSError:
                self.lose_driver()
        self.replies.clear()
        self.urgent = False


class LaunchFailed(Exception):
    """Nothing was spawned: `number` is the errno, `which` what it is about."""

    def __init__(self, number: int, which: str) -> None:
        super().__init__(number, which)
        self.number = number
        self.which = which


def launch(argv: list[bytes], env: Mapping[bytes, bytes], cwd: bytes, out: int, err: int) -> int:
    """Spawn `argv` in `cwd` as the leader of a session of its own; returns its process id."""
    try:
        os.chdir(cwd)
    except OSError as error:
        raise LaunchFailed(error.errno or 0, "cwd") from None
    try:
        program = find_program(argv[0], env)
        return os.posix_spawn(
            program,
            argv,
            env,
            file_actions=(
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, err, 2),
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            ),
            setsid=True,
            setsigmask=(),
            setsigdef=_RESET,
        )
    except OSError as error:
        number = error.errno or 0
        raise LaunchFailed(number, "interpreter" if number == errno.ENOENT else "program") from None
    finally:
        os.chdir("/")


def find_program(name: bytes, env: Mapping[bytes, bytes]) -> bytes:
    """The file to run: a name without a slash is looked up on the command's own PATH."""
    if b"/" in name:
        _check_program(name)
        return name
    number = errno.ENOENT
    for folder in env.get(b"PATH", os.defpath.encode()).split(b":"):
        candidate = os.path.join(folder, name) if folder else b"./" + name
        try:
            _check_program(candidate)
        except LaunchFailed as failure:
            if failure.number == errno.EACCES:
                number = errno.EACCES
            continue
        return candidate
    raise LaunchFailed(number, "program")


def _check_program(path: bytes) -> None:
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise LaunchFailed(error.errno or 0, "program") from None
    if mode & 0o170000 == 0o040000:
        raise LaunchFailed(errno.EISDIR, "program")
    if not os.access(path, os.X_OK):
        raise LaunchFailed(errno.EACCES, "program")


class Processes:
    """A look at the processes of this machine, taken when first asked; empty without /proc."""

    def __init__(self) -> None:
        self._table: dict[int, tuple[int, int, int, str]] | None = None
        self._environments: dict[int, bytes] = {}

    @property
    def table(self) -> dict[int, tuple[int, int, int, str]]:
        """Living processes: parent, group, session and start time by process id."""
        if self._table is None:
            pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if _HAS_PROC else []
            found = ((pid, _stat(pid)) for pid in pids)
            self._table = {pid: stat for pid, stat in found if stat is not None}
        return self._table

    def environment(self, pid: int) -> bytes:
        if pid not in self._environments:
            try:
                with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                    self._environments[pid] = b"\0" + file.read() + b"\0"
            except OSError:
                self._environments[pid] = b""
        return self._environments[pid]

    def members(self, command: Command) -> dict[int, str]:
        """Processes of a command with their start times.

        They are its session and group, those that bear all its marks in their environment, those
        found earlier, and the descendants of all of these.
        """
        table, marks = self.table, [b"\0" + mark + b"\0" for mark in command.marks]
        found = {
            pid
            for pid, (_, group, session, start) in table.items()
            if command.pid in (pid, group, session) or command.victims.get(pid) == start
        }
        if marks:
            found.update(p for p in table if all(mark in self.environment(p) for mark in marks))
        children: dict[int, list[int]] = {}
        for pid, stat in table.items():
            children.setdefault(stat[0], []).append(pid)
        todo = [command.pid, *found]
        while todo:
            fresh = [child for child in children.get(todo.pop(), ()) if child not in found]
            found.update(fresh)
            todo += fresh
        found -= {1, os.getpid(), os.getppid()}
        return {pid: table[pid][3] for pid in found}


def strike(command: Command, processes: Processes) -> None:
    """Send the ladder's signal to the group and to all that can be found outside it."""
    assert command.signal is not None
    found = processes.members(command)
    command.victims.update(found)
    if command.pid > 0 and not (command.reaped and _HAS_PROC):
        _signal(os.killpg, command.pid, command.signal)
    for pid, start in command.victims.items():
        stat = _stat(pid)
        if stat is not None and stat[3] == start and (stat[1] != command.pid or command.reaped):
            _signal(os.kill, pid, command.signal)


def alive(command: Command, processes: Processes) -> bool:
    """Whether anything of a command still lives; what has appeared since gets the signal too."""
    if not _HAS_PROC:
        return _group_exists(command)
    if living(command):
        return True
    fresh = {pid for pid in processes.members(command) if _stat(pid) is not None}
    if fresh:
        strike(command, processes)
    return bool(fresh)


def living(command: Command) -> list[int]:
    """Those of the processes found so far that have not ended."""
    return [pid for pid, start in command.victims.items() if (s := _stat(pid)) is not None and s[3] == start]


def _stat(pid: int) -> tuple[int, int, int, str] | None:
    """Parent, group, session and start time; None for one that has ended, reaped or not."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[2]), int(fields[3]), fields[19].decode()


def _group_exists(command: Command) -> bool:
    if command.status is None:
        return True
    _reap(command)
    return _signal(os.killpg, command.pid, 0)


def _hand_on(number: int, _frame: object) -> None:
    """A command that signals its parent means its driver; one that is gone hears nothing."""
    if os.getppid() == _DRIVER:
        _signal(os.kill, _DRIVER, number)


def _signal(send: Any, target: int, number: int) -> bool:
    try:
        send(target, number)
        if number == signal.SIGTERM:
            send(target, signal.SIGCONT)
    except OSError:
        return False
    return True


def _exit_status(command: Command) -> int | None:
    """The exit code, or the negated signal, of a leader that has ended; None while it runs."""
    try:
        if _HOLDS_DEAD:
            result = os.waitid(os.P_PID, command.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if result is None:
                return None
            return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
        pid, status = os.waitpid(command.pid, os.WNOHANG)
    except ChildProcessError:
        command.reaped = True
        return 0
    if not pid:
        return None
    command.reaped = True
    return os.waitstatus_to_exitcode(status)


def _reap(command: Command) -> None:
    if not command.reaped:
        try:
            pid, _ = os.waitpid(command.pid, os.WNOHANG)
            command.reaped = bool(pid)
        except ChildProcessError:
            command.reaped = True


def _receive(sock: socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = sock.recvmsg(_RECEIVED_BYTES, socket.CMSG_SPACE(4 * 256), _CLOEXEC)
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            view = memoryview(payload[: len(payload) & ~3]).cast("i")
            fds.extend(view)
    if not _CLOEXEC:
        for fd in fds:
            os.set_inheritable(fd, False)
    return data, fds


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), _hand_on)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    kept = (SOCKET_FD, LEASE_FD) if "lease" in sys.argv[1:] else (SOCKET_FD,)
    for fd in kept:
        os.set_inheritable(fd, False)
    # Descriptors that the driver's own parent let it inherit are none of the commands' business.
    os.closerange(kept[-1] + 1, max(os.sysconf("SC_OPEN_MAX"), 1024))
    server = Server(socket.socket(fileno=SOCKET_FD))
    try:
        server.run()
    except Exception:
        # Whatever went wrong here, no command may outlive its guard.
        server.lose_driver()
        server.run()


if __name__ == "__main__":
    main()
    os._exit(0)

"""The part of the store contract that needs files and real processes: crashes, locks, damage.

Subclass `FileStoreContract` and set `name` (of the registry), `database` and `blobs` (paths below the
folder that a fixture `root` gives). The programs that it starts speak line by line.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowstone.errors import CorruptJournal, LeaseHeld, StoreError
from flowstone.ports.store import Store
from flowstone.run.events import Recorded, StepOpened
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunSummary
from flowstone.stores.registry import open_store
from flowstone.testing.store_contract import RUN, attempt, record

_PRELUDE = """
import os, resource, signal, subprocess, sys, time
from flowstone.errors import *
from flowstone.run.events import *
from flowstone.run.outcome import *
from flowstone.run.record import *
from flowstone.stores.registry import open_store
from flowstone.testing.store_contract import RUN, attempt, record
def say(*words): print(*words, flush=True)
def opened(): return open_store(sys.argv[1], sys.argv[2])
"""

APPENDING = """
store, seq = opened(), int(sys.argv[3])
while True:
    seq = store.append(RUN, seq, attempt(f"a:{seq}", 0, Outcome(value="x" * 500)), RunSummary(updated_at=seq))
    say(seq)
"""

RACING = """
store, wins = opened(), 0
say("ready"); sys.stdin.readline()
while wins < 40:
    last = sum(1 for _ in store.read(RUN))
    try:
        store.append(RUN, last, [StepOpened(sys.argv[3], last), StepOpened(sys.argv[3], last)], RunSummary())
        wins += 1
    except JournalConflict:
        pass
say("done")
"""

HOLDING = """
lease = opened().lease(RUN, "the first")
say("held"); time.sleep(600)
"""

GUARDED = """
lease = opened().lease(RUN, "the first")
guard = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], pass_fds=[lease.fd])
say(guard.pid); time.sleep(600)
"""

FILLING = """
store = opened()
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
seq = 0
try:
    while True:
        seq = store.append(RUN, seq, [StepClosed("a", 1, Status.SUCCEEDED, "x" * 20_000)], RunSummary())
except StoreError as error:
    say(seq, error)
"""

FILLING_BLOBS = """
store = opened()
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    store.put_blob(b"x" * 2_000_000)
except StoreError as error:
    say(error, "|", error.hint)
"""

WITHOUT_RIGHTS = """
open_store(sys.argv[1], "/nowhere", readonly=True).close()  # what is imported late may lie out of reach
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    opened().create(record("run-new"), RunSummary())
except StoreError as error:
    say("write:", error)
reader = open_store(sys.argv[1], sys.argv[2], readonly=True)
say("read:", sum(1 for _ in reader.read(RUN)))
"""


class FileStoreContract:
    """What holds for a store in files, also across processes."""

    name: str
    database: str
    blobs: str
    locks: str

    @pytest.fixture
    def store(self, root: Path) -> Iterator[Store]:
        store = self.opened(root)
        store.create(record(), RunSummary())
        yield store
        store.close()

    @pytest.fixture
    def started(self) -> Iterator[list[subprocess.Popen[str]]]:
        processes: list[subprocess.Popen[str]] = []
        yield processes
        for process in processes:
            process.kill()
            process.communicate()

    def opened(self, root: Path, *, readonly: bool = False) -> Store:
        return open_store(self.name, self.place(root), readonly=readonly)

    def place(self, root: Path) -> str:
        return str(root / self.database) if self.name == "sqlite" else str(root)

    def start(
        self, started: list[subprocess.Popen[str]], root: Path, program: str, *words: str
    ) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PRELUDE + program, self.name, self.place(root), *words]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
        started.append(process)
        return process

    def test_what_was_appended_survives_a_kill(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        told = 0
        for pause in (0.0, 0.003, 0.01):
            process = self.start(started, root, APPENDING, str(told))
            told = int(line(process))
            time.sleep(pause)
            process.kill()
            told = max([told, *map(int, process.communicate()[0].split())])
            events = list(self.opened(root).read(RUN))
            assert told <= len(events) <= told + 2
            assert len(events) % 2 == 0
            assert [found.seq for found in events] == list(range(1, len(events) + 1))
            assert self.opened(root).load(RUN).summary.updated_at == len(events) - 2
            told = len(events)
        assert store.append(RUN, told, [StepOpened("a", 1)], RunSummary()) == told + 1

    def test_two_processes_append_without_losing_or_mixing(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        processes = [self.start(started, root, RACING, name) for name in ("one", "two")]
        assert [line(process) for process in processes] == ["ready", "ready"]
        for process in processes:
            tell(process)
        assert [line(process) for process in processes] == ["done", "done"]
        steps = [found.event.step for found in store.read(RUN) if isinstance(found.event, StepOpened)]
        assert len(steps) == 160
        assert steps[::2] == steps[1::2]

    def test_a_killed_holder_is_taken_over_at_once(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        holder = self.start(started, root, HOLDING)
        assert line(holder) == "held"
        with pytest.raises(LeaseHeld, match=rf"pid {holder.pid} since 2") as caught:
            store.lease(RUN, "me")
        assert caught.value.holder == f"pid {holder.pid}"
        holder.kill()
        # A zombie until it is waited for: dead all the same.
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        store.lease(RUN, "me").release()

    def test_a_suspended_holder_is_never_robbed(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        holder = self.start(started, root, HOLDING)
        assert line(holder) == "held"
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(LeaseHeld, match=f"pid {holder.pid}"):
            store.lease(RUN, "me", wait_ms=100)
        holder.send_signal(signal.SIGCONT)

    def test_a_live_holder_is_not_waited_for(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        assert line(self.start(started, root, HOLDING)) == "held"
        begun = time.monotonic()
        with pytest.raises(LeaseHeld):
            store.lease(RUN, "me", wait_ms=30_000)
        assert time.monotonic() - begun < 10

    def test_the_guard_of_a_dead_holder_is_waited_for(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        holder = self.start(started, root, GUARDED)
        guard = int(line(holder))
        try:
            holder.kill()
            holder.wait()
            with pytest.raises(LeaseHeld, match="still being ended"):
                store.lease(RUN, "me", wait_ms=50)
            killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -9 {guard}"])
            store.lease(RUN, "me", wait_ms=30_000).release()
            killer.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(guard, signal.SIGKILL)

    def test_a_strangers_pid_in_the_lock_file_holds_nothing(self, store: Store, root: Path) -> None:
        folder = root / self.locks
        store.lease(RUN, "first").release()
        (folder / f"{RUN}.lock").write_text(json.dumps({"pid": os.getppid(), "holder": "stranger"}))
        lease = store.lease(RUN, "me")
        with pytest.raises(LeaseHeld, match=f"pid {os.getpid()}"):
            self.opened(root).lease(RUN, "second")
        lease.release()
        assert list(folder.iterdir()) == []

    def test_a_lease_exposes_a_descriptor_that_children_do_not_inherit(self, store: Store) -> None:
        lease = store.lease(RUN, "me")
        assert lease.fd is not None
        assert not os.get_inheritable(lease.fd)
        lease.release()
        assert lease.fd is None

    def test_a_lost_or_altered_blob_is_a_corrupt_journal(self, store: Store, root: Path) -> None:
        digest = store.put_blob(b"precious")
        path = root / self.blobs / digest[:2] / digest
        path.write_bytes(b"poisoned")
        with pytest.raises(CorruptJournal, match="altered"):
            store.get_blob(digest)
        assert store.put_blob(b"precious") == digest
        assert store.get_blob(digest) == b"precious"
        path.unlink()
        with pytest.raises(CorruptJournal, match="lost"):
            store.get_blob(digest)

    def test_a_full_disk_loses_nothing_that_was_told(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        process = self.start(started, root, FILLING)
        told, error = process.communicate()[0].split(" ", 1)
        assert "state.db" in error
        assert len(list(store.read(RUN))) == int(told) > 0
        assert store.append(RUN, int(told), [StepOpened("a", 1)], RunSummary()) == int(told) + 1

    def test_a_full_disk_leaves_no_half_blob(
        self, store: Store, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        said = self.start(started, root, FILLING_BLOBS).communicate()[0]
        assert self.blobs in said
        assert "File too large" in said
        assert [path for path in (root / self.blobs).rglob("*") if path.is_file()] == []
        assert store.get_blob(store.put_blob(b"x")) == b"x"

    def test_a_folder_that_may_not_be_written_is_named_and_can_be_read(
        self, root: Path, started: list[subprocess.Popen[str]]
    ) -> None:
        store = self.opened(root)
        store.create(record(), RunSummary())
        store.append(RUN, 0, [StepOpened("a", 1)], RunSummary())
        store.close()
        folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
        for path in root.rglob("*"):
            path.chmod(0o444 if path.is_file() else 0o555)
        root.chmod(0o555)
        try:
            said = self.start(started, root, WITHOUT_RIGHTS).communicate()[0].splitlines()
        finally:
            for path in folders:
                path.chmod(0o755)
        assert said[0].startswith("write: ")
        assert str(root) in said[0]
        assert said[1] == "read: 1"

    def test_a_file_in_place_of_the_folder_is_named(self, root: Path) -> None:
        (root / "file").write_text("")
        with pytest.raises(StoreError, match="file"):
            self.opened(root / "file")

    def test_files_are_for_their_owner_only(self, store: Store, root: Path) -> None:
        store.append(RUN, 0, attempt("a:0", 0, Outcome(value="secret")), RunSummary())
        store.put_blob(b"secret")
        lease = store.lease(RUN, "me")
        files = [path for path in root.rglob("*") if path.is_file()]
        assert len(files) >= 4
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in files} == {0}
        lease.release()

    def test_opened_to_read_a_missing_store_is_empty_and_stays_missing(self, root: Path) -> None:
        store = self.opened(root / "nowhere", readonly=True)
        assert list(store.find()) == []
        assert list(store.events()) == []
        with pytest.raises(StoreError, match="read only"):
            store.create(record(), RunSummary())
        with pytest.raises(StoreError, match="read only"):
            store.lease(RUN, "me")
        store.close()
        assert not (root / "nowhere").exists()

    def test_opened_to_read_it_sees_what_a_writer_commits(self, store: Store, root: Path) -> None:
        reader = self.opened(root, readonly=True)
        store.append(RUN, 0, [StepOpened("a", 1)], RunSummary())
        assert list(reader.read(RUN)) == [Recorded(1, StepOpened("a", 1))]
        with pytest.raises(StoreError, match="read only"):
            reader.append(RUN, 1, [], RunSummary())
        reader.close()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a program says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()

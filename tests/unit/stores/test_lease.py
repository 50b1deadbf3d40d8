from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading

import pytest

from flowstone.errors import LeaseHeld, StoreError
from flowstone.stores.lease import Holder, is_alive, read_holder, take_lease


def test_the_file_names_its_holder(tmp_path):
    lease = take_lease(str(tmp_path), "run-1", "driver 7")
    path = tmp_path / "run-1.lock"
    found = read_holder(str(path))
    assert (found.pid, found.host, found.holder) == (os.getpid(), os.uname().nodename, "driver 7")
    assert {"pid", "host", "startedAt", "holder"} <= set(json.loads(path.read_bytes()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_alive(found)
    lease.release()
    assert not path.exists()


def test_the_folder_is_made_for_the_owner_only(tmp_path):
    take_lease(str(tmp_path / "locks"), "run-1", "d").release()
    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\x00", b'{"pid":1,"host":"h","startedAt":1,"holder":"x"}', b"x" * 5_000]
)
def test_what_a_lock_file_says_holds_nothing(tmp_path, content):
    path = tmp_path / "run-1.lock"
    path.write_bytes(content)
    assert read_holder(str(path)) is None
    lease = take_lease(str(tmp_path), "run-1", "d")
    assert read_holder(str(path)).pid == os.getpid()
    lease.release()


def test_any_holder_can_be_named(tmp_path):
    lease = take_lease(str(tmp_path), "run-1", "\x01\udcff" * 500)
    assert read_holder(str(tmp_path / "run-1.lock")).holder.startswith("\x01?")
    lease.release()


def test_a_half_written_name_is_not_believed(tmp_path):
    lease = take_lease(str(tmp_path), "run-1", "d")
    path = tmp_path / "run-1.lock"
    whole = path.read_bytes()
    pid = str(os.getpid()).encode()
    path.write_bytes(whole.replace(pid, b"9" * len(pid), 1))
    assert read_holder(str(path)) is None
    with pytest.raises(LeaseHeld, match="held by another process") as caught:
        take_lease(str(tmp_path), "run-1", "e")
    assert caught.value.holder == "unknown"
    lease.release()


def test_a_process_with_the_pid_of_a_dead_one_is_not_the_holder():
    host = os.uname().nodename
    assert is_alive(Holder(os.getpid(), host, 0, "d"))
    assert not is_alive(Holder(os.getpid(), host, 0, "d", born="1"))
    assert not is_alive(Holder(2**22 + 1, host, 0, "d"))
    assert not is_alive(Holder(2**80, host, 0, "d"))
    assert is_alive(Holder(2**22 + 1, "another host", 0, "d"))


def test_a_removed_lock_file_is_not_mistaken_for_the_lock(tmp_path):
    first = take_lease(str(tmp_path), "run-1", "first")
    os.unlink(tmp_path / "run-1.lock")
    second = take_lease(str(tmp_path), "run-1", "second")
    first.release()
    with pytest.raises(LeaseHeld):
        take_lease(str(tmp_path), "run-1", "third")
    second.release()


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    os.symlink(tmp_path / "victim", tmp_path / "run-1.lock")
    with pytest.raises(StoreError, match=r"run-1\.lock"):
        take_lease(str(tmp_path), "run-1", "d")
    assert (tmp_path / "victim").read_text() == "precious"


def _compete(folder, rounds, inside, wrong):
    taken = 0
    while taken < rounds:
        try:
            lease = take_lease(folder, "run-1", "competitor")
        except LeaseHeld:
            continue
        with inside.get_lock():
            inside.value += 1
            wrong.value += inside.value != 1
        with inside.get_lock():
            inside.value -= 1
        lease.release()
        taken += 1


def test_of_many_only_one_holds_it_at_a_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    inside, wrong = context.Value("i", 0), context.Value("i", 0)
    arguments = (str(tmp_path), 100, inside, wrong)
    processes = [context.Process(target=_compete, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    threads = [threading.Thread(target=_compete, args=arguments) for _ in range(2)]
    for worker in (*threads,):
        worker.start()
    for worker in (*threads, *processes):
        worker.join()
    assert wrong.value == 0

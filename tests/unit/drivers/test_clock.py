from __future__ import annotations

import time
import uuid

from flowstone.drivers.clock import SystemClock, uuid7_text


def test_an_id_is_a_uuid_of_version_seven_with_the_time_in_front():
    clock = SystemClock()
    before = time.time_ns() // 1_000_000
    found = uuid.UUID(clock.new_id())
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert before <= found.int >> 80 <= time.time_ns() // 1_000_000


def test_ids_grow_and_never_repeat():
    clock = SystemClock()
    ids = [clock.new_id() for _ in range(20_000)]
    assert ids == sorted(set(ids))


def test_the_fields_are_where_the_standard_puts_them():
    assert uuid7_text(0x017F22E279B0, (0xCC3 << 62) | 0x18C4DC0C0C07398F) == ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")


def test_time_does_not_go_backwards_when_the_clock_is_set_back(monkeypatch):
    clock = SystemClock()
    times = iter([5_000_000, 3_000_000, 6_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(times))
    assert [clock.now_ms() for _ in range(3)] == [5, 5, 6]


def test_jitter_is_from_zero_up_to_one():
    clock = SystemClock()
    values = [clock.jitter() for _ in range(1_000)]
    assert all(0 <= value < 1 for value in values)
    assert len(set(values)) > 900

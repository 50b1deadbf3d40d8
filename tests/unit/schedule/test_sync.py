"""Wanted rows against installed ones: one row at a time, ours only, and twice changes nothing."""

from __future__ import annotations

import pytest

from flowstone.errors import StoreError
from flowstone.ports.activation import Row, Unschedulable
from flowstone.schedule.rows import Binding, Scheduled, Timed, input_flags, rows_of
from flowstone.schedule.sync import Kind, apply, plan_actions

BINDING = Binding(("/opt/bin/akm",), (("AKM_EVENT_SOURCE", "schedule"),))


class Rows:
    """A Timetable in memory; `refuse` names keys that it does not take."""

    name, missed = "memory", "none"

    def __init__(self, *rows: Row) -> None:
        self.held = {row.key: row for row in rows}
        self.refuse: dict[str, Exception] = {}
        self.changes: list[str] = []

    def problem(self):
        return None

    def rows(self):
        return list(self.held.values())

    def put(self, row):
        if row.key in self.refuse:
            raise self.refuse[row.key]
        self.held[row.key] = row
        self.changes.append(f"put {row.key}")

    def remove(self, key):
        self.held.pop(key, None)
        self.changes.append(f"remove {key}")


def wanted(name="a", *crons, inputs=None):
    tables = tuple(Timed(cron, inputs or {}) for cron in crons or ("0 6 * * *",))
    return rows_of(Scheduled(f"m//tasks/{name}", ("task", "run", name, "--scheduled"), "/m", tables), BINDING)


def run(rows, table, *, dry=False, rebind=False, keep=()):
    actions = plan_actions(rows, table.rows(), {row.key: 1 for row in rows}, rebind=rebind, keep=keep)
    return apply(actions, table, (), dry=dry)


def test_a_first_synchronisation_adds_and_a_second_changes_nothing():
    table = Rows()
    rows = wanted("a", "0 6 * * *", "0 7 * * *")
    assert [row.key for row in run(rows, table).of(Kind.ADD)] == ["m//tasks/a#0", "m//tasks/a#1"]
    again = run(rows, table)
    assert len(again.of(Kind.KEEP)) == 2
    assert table.changes == ["put m//tasks/a#0", "put m//tasks/a#1"]


def test_what_is_not_wanted_any_more_goes():
    table = Rows(*wanted("a", "0 6 * * *", "0 7 * * *"), *wanted("b"))
    outcome = run(wanted("a"), table)
    assert [row.key for row in outcome.of(Kind.REMOVE)] == ["m//tasks/a#1", "m//tasks/b#0"]
    assert list(table.held) == ["m//tasks/a#0"]


def test_other_times_and_other_inputs_are_an_update():
    table = Rows(*wanted("a", "0 6 * * *"))
    assert run(wanted("a", "0 8 * * *"), table).of(Kind.UPDATE)
    assert run(wanted("a", "0 8 * * *", inputs={"n": 1}), table).of(Kind.UPDATE)


def test_another_spelling_of_the_same_times_is_none():
    table = Rows(*wanted("a", "5-59/15 * * 1 1"))
    assert run(wanted("a", "5/15 * * JAN MON"), table).of(Kind.KEEP)


def test_a_dry_run_changes_nothing():
    table = Rows(*wanted("b"))
    outcome = run(wanted("a"), table, dry=True)
    assert (len(outcome.of(Kind.ADD)), len(outcome.of(Kind.REMOVE))) == (1, 1)
    assert table.changes == []


def test_rows_of_a_source_that_cannot_be_read_stay():
    table = Rows(*wanted("a"))
    assert run([], table, keep=["m//tasks/a"]).actions == ()


def test_a_row_of_another_program_is_bound_anew_only_when_asked():
    row = wanted("a")[0]
    table = Rows(Row(row.key, row.cron, ("/old/akm", *row.argv[1:]), row.cwd, row.env))
    outcome = run([row], table)
    assert table.changes == []
    (failure,) = outcome.failures
    assert failure.code == "BOUND_ELSEWHERE"
    assert "/old/akm" in failure.message
    assert "--rebind" in failure.message
    assert run([row], table, rebind=True).of(Kind.UPDATE) == [row]
    assert table.held[row.key] == row


def test_a_row_without_a_command_is_mended():
    row = wanted("a")[0]
    table = Rows(Row(row.key, "0 6 * * *", (), ""))
    assert run([row], table).of(Kind.UPDATE) == [row]


def test_one_row_that_fails_does_not_keep_the_others():
    table = Rows()
    table.refuse = {"m//tasks/a#0": StoreError("full"), "m//tasks/b#0": Unschedulable("too long")}
    outcome = run([*wanted("a"), *wanted("b"), *wanted("c")], table)
    assert [(one.ref, one.code) for one in outcome.failures] == [
        ("m//tasks/a#0", "STATE_DB_UNAVAILABLE"),
        ("m//tasks/b#0", "UNSCHEDULABLE"),
    ]
    assert list(table.held) == ["m//tasks/c#0"]


def test_the_flags_of_a_row_are_sorted_and_cannot_be_mistaken():
    assert input_flags({"z": "text", "a": 5, "d": "-x", "e": "", "o": {"k": [1]}}) == (
        "--a", "5", "--d=-x", "--e=", "--o", '{"k":[1]}', "--z", "text",
    )  # fmt: skip
    with pytest.raises(Unschedulable):
        input_flags({"a": "\0"})

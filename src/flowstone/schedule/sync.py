"""Wanted rows against the rows that a machine's scheduler holds: what to do, and doing it row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from flowstone.errors import FlowstoneError
from flowstone.expr.cron import CronProblem, check_cron, numeric_cron
from flowstone.ports.activation import Row, Timetable, Unschedulable


class Kind(StrEnum):
    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"
    KEEP = "keep"
    BOUND = "bound"
    """The row is as wanted but for the program that it starts, and nobody asked to bind it anew."""


class Action(msgspec.Struct, frozen=True):
    """One row's change. `row` is the wanted one, or the one to remove; `found` the one that is there."""

    kind: Kind
    row: Row
    found: Row | None = None


class Failure(msgspec.Struct, frozen=True):
    """A ref (or a row's key) that could not be brought in order, and why; its rows stay as they are."""

    ref: str
    code: str
    message: str


class Outcome(msgspec.Struct, frozen=True):
    """What a synchronisation did, or would do."""

    actions: tuple[Action, ...]
    failures: tuple[Failure, ...]

    def of(self, kind: Kind) -> list[Row]:
        return [action.row for action in self.actions if action.kind is kind]


def plan_actions(
    wanted: Sequence[Row], installed: Sequence[Row], programs: Mapping[str, int], *, rebind: bool, keep: Iterable[str]
) -> list[Action]:
    """One action for each row, the wanted ones in their order, then the removals.

    `programs` tells for each wanted key how many words of its row are the program; `keep` are refs
    whose rows stay whatever they are, because their source could not be read.
    """
    found = {row.key: row for row in installed}
    kept = frozenset(keep)
    actions = [_wanted(row, found.get(row.key), programs[row.key], rebind) for row in wanted]
    keys = {row.key for row in wanted}
    gone = [row for row in installed if row.key not in keys and row.ref not in kept]
    return actions + [Action(Kind.REMOVE, row, row) for row in {row.key: row for row in gone}.values()]


def apply(actions: Sequence[Action], timetable: Timetable, failures: Sequence[Failure], *, dry: bool) -> Outcome:
    """Carry the actions out, each for itself: one that fails does not keep the others from being done."""
    done: list[Action] = []
    failed = list(failures)
    for action in actions:
        if action.kind is Kind.BOUND:
            failed.append(_bound(action))
        try:
            if not dry:
                _carry_out(action, timetable)
            done.append(action)
        except Unschedulable as error:
            failed.append(Failure(action.row.key, "UNSCHEDULABLE", f"{action.row.key}: {error}."))
        except FlowstoneError as error:
            failed.append(Failure(action.row.key, error.code, f"{action.row.key}: {error.message}"))
    return Outcome(tuple(done), tuple(failed))


def same(one: Row, other: Row) -> bool:
    """Whether two rows mean the same, however their times are spelt."""
    return one.argv == other.argv and one.cwd == other.cwd and one.env == other.env and _cron(one) == _cron(other)


def _wanted(row: Row, found: Row | None, words: int, rebind: bool) -> Action:
    if found is None:
        return Action(Kind.ADD, row)
    if same(row, found):
        return Action(Kind.KEEP, row, found)
    bound = found.argv and (found.argv[:words] != row.argv[:words] or found.env != row.env)
    if bound and not rebind:
        return Action(Kind.BOUND, row, found)
    return Action(Kind.UPDATE, row, found)


def _carry_out(action: Action, timetable: Timetable) -> None:
    match action.kind:
        case Kind.ADD | Kind.UPDATE:
            timetable.put(action.row)
        case Kind.REMOVE:
            timetable.remove(action.row.key)
        case Kind.KEEP | Kind.BOUND:
            pass


def _bound(action: Action) -> Failure:
    import shlex

    assert action.found is not None
    message = (
        f"{action.row.key}: its row starts another program ({shlex.join(action.found.argv)}) and was left as it is; "
        "bind it to this one with akm task sync --rebind"
    )
    return Failure(action.row.key, "BOUND_ELSEWHERE", message)


def _cron(row: Row) -> str:
    try:
        return numeric_cron(check_cron(row.cron))
    except CronProblem:
        return row.cron

"""Remote workflows → pinned copies of them in the working folder, and whether those are still whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from flowstone.errors import FlowstoneError, UsageError
from flowstone.source.lockfile import LOCK_NAME, Lock, Pin, decode_lock, encode_lock, pin_of
from flowstone.source.remote import is_remote, parse_remote

if TYPE_CHECKING:
    from flowstone.api.model import Workflow
    from flowstone.source.remotes import Remotes


class Change(msgspec.Struct, frozen=True):
    """What became of a file: `before` is None for a new one, `after` for one that is gone.

    The texts are there where both pins are and the bytes are others.
    """

    before: Pin | None
    after: Pin | None
    old_text: str = ""
    new_text: str = ""

    @property
    def reference(self) -> str:
        pin = self.after or self.before
        assert pin is not None
        return pin.reference


class Vendoring:
    """Vendors for one folder. `compile` compiles a target by way of `remotes`, and raises CompileError."""

    def __init__(self, remotes: Remotes, compile_: Callable[[str], Workflow], folder: str) -> None:
        self._remotes = remotes
        self._compile = compile_
        self._folder = folder
        self._data: dict[str, bytes] = {}

    def vendor(self, targets: Sequence[str], removed: Sequence[str] = ()) -> tuple[Change, ...]:
        """Fetch workflows with all that they nest and pin them; without targets those that are pinned.

        A target is a remote reference, or a file that nests some. Nothing is changed when anything
        is wrong: SourceError, CompileError, UsageError.
        """
        store = self._remotes.vendored
        with store.held(), self._remotes.renewed():
            old = store.lock
            gone = {self._name(target) for target in removed}
            if missing := sorted(gone - set(old.targets)):
                raise UsageError(f"{missing[0]} is not vendored here", hint=_known(old))
            named = {self._name(target): target for target in targets}
            if not named and not gone:
                named = {target: target for target in old.targets}
            if not named and not gone:
                raise UsageError("nothing is vendored here yet", hint="Name a remote workflow: flowstone vendor REF")
            families = self._renewed(old, named, gone)
            return self._settle(old, _merged(old, families, gone))

    def check(self) -> list[str]:
        """What is wrong with the pins of this folder, from what lies in it alone; nothing for sound ones."""
        store = self._remotes.vendored
        data = store.lock_bytes()
        if data is None:
            raise UsageError(f"there is no {LOCK_NAME} here", hint="Pin a remote workflow with: flowstone vendor REF")
        problems = []
        if data.decode("utf-8", "replace") != encode_lock(store.lock.files):
            problems.append(f"{LOCK_NAME}: it was not written by flowstone vendor, or changed after that")
        for pin in store.lock.files:
            try:
                store.read(pin)
            except FlowstoneError as error:
                problems.append(error.message)
        with self._remotes.offline():
            return problems or self._incomplete(store.lock)

    def _incomplete(self, lock: Lock) -> list[str]:
        """Targets of which the lock pins too little or too much."""
        problems = []
        for target in lock.targets:
            try:
                needed = {parse_remote(path).name for path in self._read_by(target)}
            except FlowstoneError as error:
                problems.append(f"{target}: {error.message}")
                continue
            extra = sorted(pin.reference for pin in lock.files if target in pin.targets and pin.reference not in needed)
            problems += [f"{LOCK_NAME}: {target} does not need {reference}" for reference in extra]
        return problems

    def _name(self, target: str) -> str:
        """What the lock calls a target."""
        if is_remote(target):
            return parse_remote(target).name
        return os.path.relpath(os.path.join(self._folder, target), self._folder)

    def _renewed(self, old: Lock, named: dict[str, str], gone: set[str]) -> dict[str, dict[str, Pin]]:
        """The files of the named targets, and of those that share one which is another now."""
        families: dict[str, dict[str, Pin]] = {}
        while waiting := sorted(named.keys() - families.keys()):
            for name in waiting:
                families[name] = self._family(name, named[name])
            fresh = {reference: pin for family in families.values() for reference, pin in family.items()}
            for pin in old.files:
                if pin.reference in fresh and not _same(fresh[pin.reference], pin):
                    named |= {target: target for target in pin.targets if target not in {*named, *gone}}
        return families

    def _family(self, name: str, target: str) -> dict[str, Pin]:
        """The remote files that a target consists of, by reference."""
        family = {}
        for path in self._read_by(target):
            remote, found = parse_remote(path), self._remotes.seen[parse_remote(path).text]
            pin = pin_of(remote, found.source.digest, found.commit, [name])
            family[pin.reference] = pin
            self._data[pin.path] = found.data
        if not family:
            raise UsageError(f"{target} nests no remote workflow; there is nothing to vendor")
        return family

    def _read_by(self, target: str) -> list[str]:
        workflow = self._compile(target)
        return [file.path for file in workflow.compiled.plan.read_set if is_remote(file.path)]

    def _settle(self, old: Lock, files: dict[str, Pin]) -> tuple[Change, ...]:
        """Write the new files, then the lock, and only then remove what nothing pins any more."""
        store = self._remotes.vendored
        changes = tuple(self._changes(old, files))
        text = encode_lock(files.values()).encode()
        decode_lock(text, LOCK_NAME)
        for pin in files.values():
            if pin.path in self._data and not self._holds(pin):
                store.write(pin.path, self._data[pin.path])
        if store.lock_bytes() != text:
            store.write(LOCK_NAME, text)
        for path in sorted({pin.path for pin in old.files} - {pin.path for pin in files.values()}):
            store.remove(path)
        return changes

    def _holds(self, pin: Pin) -> bool:
        try:
            return bool(self._remotes.vendored.read(pin) == self._data[pin.path])
        except FlowstoneError:
            return False

    def _changes(self, old: Lock, files: dict[str, Pin]) -> Iterator[Change]:
        """What is another now, by reference; a file at another commit is the same one, changed."""
        before = {pin.reference: pin for pin in old.files}
        lost = [pin for pin in old.files if pin.reference not in files]
        for reference in sorted(files):
            now, was = files[reference], before.get(reference)
            if was is None:
                was = next((pin for pin in lost if _without_commit(pin) == _without_commit(now)), None)
                lost = [pin for pin in lost if pin is not was]
            if was is None or was.digest == now.digest:
                yield Change(was, now)
            else:
                yield Change(was, now, self._old_text(was), self._data[now.path].decode("utf-8", "replace"))
        yield from (Change(pin, None) for pin in lost)

    def _old_text(self, pin: Pin) -> str:
        try:
            return self._remotes.vendored.read(pin).decode("utf-8", "replace")
        except FlowstoneError:
            return ""


def _merged(old: Lock, families: Mapping[str, Mapping[str, Pin]], gone: set[str]) -> dict[str, Pin]:
    """The pins of all targets: the old ones where they were not renewed, without those of removed ones."""
    files: dict[str, Pin] = {}
    for pin in old.files:
        if kept := set(pin.targets) - families.keys() - gone:
            files[pin.reference] = _for(pin, kept)
    for family in families.values():
        for reference, pin in family.items():
            others = files[reference].targets if reference in files else ()
            files[reference] = _for(pin, {*others, *pin.targets})
    return files


def _for(pin: Pin, targets: Iterable[str]) -> Pin:
    return msgspec.structs.replace(pin, targets=tuple(sorted(targets)))


def _same(one: Pin, other: Pin) -> bool:
    return _for(one, ()) == _for(other, ())


def _without_commit(pin: Pin) -> str:
    remote = parse_remote(pin.reference)
    return f"{remote.repo}//{remote.path}" if remote.commit else pin.reference


def _known(lock: Lock) -> str:
    return f"What is: {', '.join(lock.targets)}" if lock.targets else "Nothing is vendored here."

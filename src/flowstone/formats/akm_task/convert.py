"""The tree of a task of version 2 or 3 → the tree of version 4, in memory, places kept.

Version 2 is flat: `workflow`, `prompt` or `command` with `params`; version 3 has the keys of
version 4 with `on:` and `akm:` around some of them. What cannot be said in version 4 is refused.
"""

from __future__ import annotations

import re

from flowstone.diagnostics import Place, Report
from flowstone.formats.akm_task import grammar
from flowstone.source.tree import Entry, Mapping, Node, Scalar, Sequence
from flowstone.values import clip

_TARGETS = ("workflow", "prompt", "command")
_RENAMED = {
    "timeoutMs": "timeout",
    "profile": "engine",
    "max_steps": "maxSteps",
    "max_retries": "maxRetries",
    "llm": "inference",
}
_DROPPED = frozenset({"enabled", "type"})
_WITHIN_AKM = ("agent", "engine", "model", "inference", "tools", "timeout", "redact", "maxSteps", "maxRetries")
_REF = re.compile(r"(?:[A-Za-z0-9_-]+//)?(workflows|commands|scripts)/.+")


def converted(root: Mapping, version: int, report: Report) -> Mapping | None:
    """The same task in version 4, told in one warning; None with a report where that cannot be."""
    conversion = _Conversion(root, report)
    entries = conversion.flat() if version == 2 else conversion.wrapped()
    if report.failed:
        return None
    place = root.place
    if (written := root.entry("version")) is not None:
        place = written.key.place
    message = f"The task has version {version}, which is deprecated; it was read as version {grammar.VERSION}."
    report.warn("task-converted", message, place, "rewrite it: akm task validate tells the outcome for each file")
    version_entry = _entry("version", Scalar(grammar.VERSION, str(grammar.VERSION), place), place)
    return Mapping((version_entry, *entries), root.place)


class _Conversion:
    def __init__(self, root: Mapping, report: Report) -> None:
        self._root = root
        self._report = report

    def flat(self) -> list[Entry]:
        """Version 2: the target is one of three keys, and params are values for it."""
        targets = [entry for entry in self._root.entries if entry.name in _TARGETS]
        if len(targets) != 1:
            message = f"A task of version 2 has exactly one of {', '.join(_TARGETS)}; this one has {len(targets)}."
            self._refuse(message, self._root.place)
            return []
        entries: list[Entry] = []
        for entry in self._root.entries:
            name = _RENAMED.get(entry.name, entry.name)
            if name == "version" or name in _DROPPED:
                continue
            if entry.name in _TARGETS:
                entries += self._target(entry)
            elif name == "params":
                entries += self._params(entry)
            elif name in grammar.KEYS:
                entries.append(Entry(name, entry.key, entry.value))
            else:
                self._unknown(entry, 2)
        return entries

    def wrapped(self) -> list[Entry]:
        """Version 3: time tables stand in `on`, limits and engines in `akm`."""
        entries: list[Entry] = []
        for entry in self._root.entries:
            name = _RENAMED.get(entry.name, entry.name)
            if name == "version" or name in _DROPPED:
                continue
            if name == "on":
                entries += self._schedules(entry)
            elif name == "akm":
                entries += self._inner(entry)
            elif name in grammar.KEYS:
                entries.append(Entry(name, entry.key, entry.value))
            else:
                self._unknown(entry, 3)
        return entries

    def _target(self, entry: Entry) -> list[Entry]:
        place, value = entry.value.place, entry.value
        if entry.name == "command" and isinstance(value, Sequence):
            return [_entry("run", self._joined(value), place)]
        if not isinstance(value, Scalar) or not isinstance(value.value, str) or not value.value.strip():
            self._refuse(f'"{entry.name}" must be a text.', place)
            return []
        text = value.value.strip()
        if entry.name == "command":
            return [_entry("run", _text(value.value, place), place)]
        if entry.name == "workflow":
            return [_entry("uses", _text(text if _REF.fullmatch(text) else f"workflows/{text}", place), place)]
        found = _REF.fullmatch(text)
        key = "ref" if found is not None and found[1] == "commands" else "content"
        given = Mapping((_entry(key, _text(text if key == "ref" else value.value, place), place),), place)
        return [_entry("uses", _text("akm/command", place), place), _entry("with", given, place)]

    def _joined(self, words: Sequence) -> Scalar:
        import shlex

        texts = [word.text for word in words.items if isinstance(word, Scalar)]
        if len(texts) != len(words.items) or not texts:
            self._refuse('"command" must be a text or a list of texts.', words.place)
        return _text(shlex.join(texts), words.place)

    def _params(self, entry: Entry) -> list[Entry]:
        """Values become inputs with these as defaults."""
        if not isinstance(entry.value, Mapping):
            self._refuse('"params" must be a mapping of values.', entry.value.place)
            return []
        inputs = []
        for param in entry.value.entries:
            place = param.key.place
            kind = _entry("type", _text(_type_of(param.value), place), place)
            shape = Mapping((kind, _entry("default", param.value, place)), place)
            inputs.append(Entry(param.name, param.key, shape))
        return [Entry("inputs", entry.key, Mapping(tuple(inputs), entry.value.place))]

    def _schedules(self, entry: Entry) -> list[Entry]:
        if not isinstance(entry.value, Mapping):
            self._refuse('"on" must be a mapping with schedule.', entry.value.place)
            return []
        found: list[Entry] = []
        for event in entry.value.entries:
            if event.name == "schedule":
                found.append(Entry("schedule", event.key, event.value))
            elif event.name not in ("workflow_dispatch", "manual"):
                self._refuse(f'"on" holds "{clip(event.name, 40)}", which no task can wait for.', event.key.place)
        return found

    def _inner(self, entry: Entry) -> list[Entry]:
        if not isinstance(entry.value, Mapping):
            self._refuse('"akm" must be a mapping.', entry.value.place)
            return []
        found: list[Entry] = []
        for inner in entry.value.entries:
            name = _RENAMED.get(inner.name, inner.name)
            if name in _WITHIN_AKM:
                found.append(Entry(name, inner.key, inner.value))
            elif name not in _DROPPED:
                self._refuse(f'"akm.{clip(inner.name, 40)}" has no place in version 4.', inner.key.place)
        return found

    def _unknown(self, entry: Entry, version: int) -> None:
        self._refuse(
            f'"{clip(entry.name, 40)}" of a task of version {version} has no place in version 4.', entry.key.place
        )

    def _refuse(self, message: str, place: Place) -> None:
        self._report.error("task-version-unsupported", message, place, "rewrite the task with version: 4")


def _entry(name: str, value: Node, place: Place) -> Entry:
    return Entry(name, _text(name, place), value)


def _text(text: str, place: Place) -> Scalar:
    return Scalar(text, text, place, plain=False)


def _type_of(node: Node) -> str:
    from flowstone.source.tree import plain
    from flowstone.values import type_name

    value = plain(node)
    return "integer" if isinstance(value, int) and not isinstance(value, bool) else type_name(value)

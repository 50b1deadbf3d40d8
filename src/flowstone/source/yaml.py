"""Text → source tree: strict YAML 1.2 with the place of every node, the first step of every language.

The events come from libyaml; what they mean is decided here: core-schema scalars, no repeated
keys, and bounds on nodes and depth that aliases cannot escape. Everything found goes to a report.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from typing import Any

import msgspec

from flowstone.diagnostics import Place, Report
from flowstone.source.tree import Entry, Mapping, Node, Scalar, Sequence
from flowstone.source.yaml_scalars import MAX_DIGITS, TooManyDigits, resolve_scalar, resolve_tagged
from flowstone.source.yaml_syntax import exceeds_depth, explain, explain_unreadable
from flowstone.source.yaml_text import LoneSurrogate, Prepared, prepare


class YamlRules(msgspec.Struct, frozen=True):
    """What a language allows. `codes` renames the codes of the diagnostics; a missing one stays.

    The codes: invalid-yaml, duplicate-key, merge-key, yaml-alias, yaml-anchor, yaml-custom-tag,
    yaml-node-limit, yaml-depth-limit, string-key-required, second-document. With `tags`, the tags
    of the core schema (`!!str` …) are obeyed and all others refused. `max_depth` counts nested
    collections, `max_nodes` scalars and collections, those behind an alias each time it is used.
    """

    aliases: bool = False
    tags: bool = False
    merge_keys: bool = False
    anchors: bool = False
    text_keys_only: bool = True
    max_nodes: int = 100_000
    max_depth: int = 128
    codes: MappingOf[str, str] = {}


def read_yaml(text: str, rules: YamlRules, report: Report, first_line: int = 1) -> Node | None:
    """Read one YAML document whose first line is line `first_line` of its file.

    None means that no tree could be built, and then the report says why; a tree may come with
    errors in the report too. A text without a document is a null scalar.
    """
    prepared = prepare(text)
    builder = _Builder(prepared, rules, report, first_line)
    for offset, found in prepared.unreadable:
        builder.problem("invalid-yaml", explain_unreadable(found), prepared.place(offset, first_line))
    if prepared.unreadable:
        return None
    return builder.run()


class _Stop(Exception):
    """The rest of the document is not read; the report says why."""


class _Frame:
    """A collection that is still open: a sequence's `items`, or a mapping's `entries`."""

    __slots__ = ("anchor", "counted", "entries", "height", "items", "key", "merged", "place", "seen")

    def __init__(self, place: Place, anchor: str | None, counted: int, mapping: bool) -> None:
        self.place = place
        self.anchor = anchor
        self.counted = counted
        self.height = 1
        self.items: list[Node] = []
        self.entries: list[Entry] | None = [] if mapping else None
        self.merged: list[Mapping] = []
        self.seen: dict[str, Place] = {}
        self.key: Scalar | None = None


class _Builder:
    """Builds the tree from events with a stack of its own, so that no depth can exhaust Python's."""

    def __init__(self, prepared: Prepared, rules: YamlRules, report: Report, first_line: int) -> None:
        self._prepared = prepared
        self._rules = rules
        self._report = report
        self._first_line = first_line
        self._last = prepared.end(first_line)
        self._plain_marks = not prepared.odd_breaks
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}
        self._nodes = 0
        self._root: Node | None = None

    def run(self) -> Node | None:
        from yaml import YAMLError
        from yaml._yaml import CParser

        parser = CParser(self._prepared.text)
        try:
            self._consume(parser)
        except YAMLError as error:
            self._syntax(error)
            return None
        except _Stop:
            return None
        return self._root if self._root is not None else Scalar(None, "", Place(self._first_line, 1))

    def problem(self, kind: str, message: str, place: Place, hint: str | None = None) -> None:
        self._report.error(self._rules.codes.get(kind, kind), message, place, hint)

    def _consume(self, parser: Any) -> None:
        from yaml import events as e

        get = parser.get_event
        steps = {
            e.ScalarEvent: self._scalar,
            e.MappingStartEvent: self._open_mapping,
            e.SequenceStartEvent: self._open_sequence,
            e.MappingEndEvent: self._close,
            e.SequenceEndEvent: self._close,
            e.AliasEvent: self._alias,
        }
        while True:
            event = get()
            step = steps.get(type(event))
            if step is not None:
                step(event)
            elif event is None or type(event) is e.StreamEndEvent:
                return
            elif type(event) is e.DocumentStartEvent and self._root is not None:
                place = self._mark_place(event.start_mark)
                self.problem("second-document", "a file holds one YAML document; a second one starts here", place)
                return

    def _syntax(self, error: Exception) -> None:
        message, mark, hint = explain(error, self._prepared.text)
        place = self._mark_place(mark)
        if exceeds_depth(error):
            self._too_deep(place)
        else:
            self.problem("invalid-yaml", message, place, hint)

    def _mark_place(self, mark: Any) -> Place:
        if self._plain_marks:
            line = mark.line + self._first_line
            return Place(line, mark.column + 1) if line <= self._last.line else self._last
        return self._prepared.place(mark.index, self._first_line)

    def _count(self, place: Place, nodes: int = 1) -> None:
        self._nodes += nodes
        if self._nodes > self._rules.max_nodes:
            message = f"the document has more than {self._rules.max_nodes:,} YAML nodes"
            self.problem("yaml-node-limit", message, place)
            raise _Stop

    def _check_depth(self, depth: int, place: Place) -> None:
        if depth > self._rules.max_depth:
            self._too_deep(place)
            raise _Stop

    def _too_deep(self, place: Place) -> None:
        message = f"the document is nested more than {self._rules.max_depth} levels deep"
        self.problem("yaml-depth-limit", message, place)

    def _scalar(self, event: Any) -> None:
        place = self._mark_place(event.start_mark)
        self._count(place)
        text: str = event.value
        if self._prepared.changed:
            text = self._restored(text, event, place)
        style = event.style
        plain = style is None or style == ""
        value: Any = text
        try:
            if event.tag is not None:
                plain, value = self._tagged(event.tag, text, plain, place)
            elif plain:
                value = resolve_scalar(text)
        except TooManyDigits:
            message = f"an integer may have at most {MAX_DIGITS:,} digits"
            self.problem("invalid-yaml", message, place, "quote it to make it text")
        node = Scalar(value, text, place, plain)
        self._anchor(event.anchor, node, place, 1, 0)
        self._attach(node, 0)

    def _restored(self, text: str, event: Any, place: Place) -> str:
        try:
            start, end = event.start_mark.index, event.end_mark.index
            return self._prepared.restore(text, start, end, event.style == '"')
        except LoneSurrogate:
            self.problem("invalid-yaml", "an escape gives half of a character (a lone surrogate)", place)
            return ""

    def _tagged(self, tag: str, text: str, plain: bool, place: Place) -> tuple[bool, Any]:
        if not self._rules.tags:
            self._refuse_tag(tag, place)
            return plain, resolve_scalar(text) if plain else text
        known, value = resolve_tagged(tag, text)
        if not known:
            self._refuse_tag(tag, place)
        return not isinstance(value, str), value

    def _refuse_tag(self, tag: str, place: Place) -> None:
        shown = tag.replace("tag:yaml.org,2002:", "!!")
        self.problem("yaml-custom-tag", f'the tag "{shown}" is not supported', place, "leave the tag out")

    def _open_mapping(self, event: Any) -> None:
        self._open(event, True, "tag:yaml.org,2002:map")

    def _open_sequence(self, event: Any) -> None:
        self._open(event, False, "tag:yaml.org,2002:seq")

    def _open(self, event: Any, mapping: bool, own_tag: str) -> None:
        place = self._mark_place(event.start_mark)
        self._count(place)
        self._check_depth(len(self._stack) + 1, place)
        if event.tag is not None and not (self._rules.tags and event.tag in {own_tag, "!"}):
            self._refuse_tag(event.tag, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Frame(place, event.anchor, self._nodes, mapping))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        node: Node
        if frame.entries is None:
            node = Sequence(tuple(frame.items), frame.place)
        else:
            for source in frame.merged:
                frame.entries.extend(entry for entry in source.entries if entry.name not in frame.seen)
                frame.seen.update((entry.name, entry.key.place) for entry in source.entries)
            node = Mapping(tuple(frame.entries), frame.place)
        self._anchor(frame.anchor, node, frame.place, self._nodes - frame.counted + 1, frame.height)
        self._attach(node, frame.height)

    def _anchor(self, name: str | None, node: Node, place: Place, nodes: int, height: int) -> None:
        if name is None:
            return
        if not self._rules.anchors:
            self.problem("yaml-anchor", f'the anchor "&{name}" is not supported', place, "write the value out")
        self._anchors[name] = (node, nodes, height)

    def _alias(self, event: Any) -> None:
        place = self._mark_place(event.start_mark)
        node, nodes, height = self._aliased(event.anchor, place)
        self._count(place, nodes)
        self._check_depth(len(self._stack) + height, place)
        self._attach(node, height, place)

    def _aliased(self, name: str, place: Place) -> tuple[Node, int, int]:
        if not self._rules.aliases:
            self.problem("yaml-alias", f'the alias "*{name}" is not supported', place, "write the value out")
        elif name not in self._anchors:
            self.problem("yaml-alias", f'the alias "*{name}" names no anchor before it', place)
        elif self._anchors[name] is None:
            self.problem("yaml-alias", f'the alias "*{name}" would hold itself', place)
        found = self._anchors.get(name)
        return found if found is not None else (Scalar(None, "", place), 1, 0)

    def _attach(self, node: Node, height: int, at: Place | None = None) -> None:
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        frame.height = max(frame.height, height + 1)
        if frame.entries is None:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = self._key(node, at or node.place)
        else:
            self._enter(frame, frame.entries, frame.key, node)
            frame.key = None

    def _key(self, node: Node, place: Place) -> Scalar:
        if not isinstance(node, Scalar):
            self.problem("string-key-required", "a key must be a text, not a list or a mapping", place)
            return Scalar("", "", place)
        if self._rules.text_keys_only and not isinstance(node.value, str):
            shown = node.text or "null"
            hint = f'write "{shown}" in quotes'
            self.problem("string-key-required", f"the key {shown} must be a text", place, hint)
        return node if node.place == place else Scalar(node.value, node.text, place, node.plain)

    def _enter(self, frame: _Frame, entries: list[Entry], key: Scalar, value: Node) -> None:
        name = key.text
        if name == "<<" and key.plain:
            self._merge(frame, key, value)
            return
        first = frame.seen.get(name)
        if first is not None:
            message = f'duplicate key "{name}" (line {key.place.line}; first used on line {first.line})'
            self.problem("duplicate-key", message, key.place)
            return
        frame.seen[name] = key.place
        if isinstance(value, Scalar) and value.plain and not value.text and value.place.line != key.place.line:
            value = Scalar(value.value, "", key.place)
        entries.append(Entry(name, key, value))

    def _merge(self, frame: _Frame, key: Scalar, value: Node) -> None:
        sources = value.items if isinstance(value, Sequence) else (value,)
        if not self._rules.merge_keys:
            self.problem("merge-key", 'the merge key "<<" is not supported', key.place, "write the keys out")
        for source in sources if self._rules.merge_keys else ():
            if isinstance(source, Mapping):
                frame.merged.append(source)
            else:
                self.problem("merge-key", '"<<" must merge a mapping or a list of mappings', source.place)

"""The `steps:` list of the front matter → step drafts, each joined with its body section later."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from flowstone.diagnostics import Place
from flowstone.formats.akm_common.document import GateOptions, MapOptions
from flowstone.formats.akm_common.fields import read_reference, read_required_reference, read_schema
from flowstone.formats.akm_common.links import Links, Reading
from flowstone.formats.akm_markdown import grammar
from flowstone.formats.akm_markdown.route import read_route
from flowstone.formats.akm_markdown.unit import ReadUnit, read_unit
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Node, Scalar, Sequence
from flowstone.values import clip

_STEP_ID = re.compile(bounds.STEP_ID)


class Draft(msgspec.Struct, frozen=True):
    """A step as far as the front matter tells it. `id` is None where it could not be read.

    `authored` is the id as it stands there, also a wrong one; `fields` are document.Step fields.
    """

    id: str | None
    authored: str | None
    place: Place
    node: Node
    routes: bool
    unit: ReadUnit
    fields: dict[str, Any]


def read_steps(at: Cursor, links: Links) -> tuple[Draft, ...]:
    """All steps in order; what they read and where routes lead goes to `links`."""
    entries = at.items()
    if not isinstance(at.node, Sequence):
        return ()
    if not entries:
        at.error("steps-empty", '"steps" must hold at least one step.', "write steps: [{ id: first }]")
    elif len(entries) > bounds.STEPS:
        at.error("steps-limit", f'"steps" holds {len(entries)} steps; at most {bounds.STEPS} are allowed.')
    reader = _Steps(links)
    return tuple(reader.read(index, entry) for index, entry in enumerate(entries))


class _Steps:
    """Reads steps one by one and remembers which ids are taken."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._first: dict[str, int] = {}

    def read(self, index: int, at: Cursor) -> Draft:
        if not isinstance(at.node, Mapping):
            at.error("step-mapping", f'Step {index + 1} must be a mapping with an "id".', "write - id: name")
            return Draft(None, None, at.place, at.node, False, ReadUnit(), {})
        authored = _authored_id(at.node)
        label = f'Step "{clip(authored, 80)}"' if authored else f"Step {index + 1}"
        found = at.named(label).mapping(grammar.STEP_KEYS)
        step_id = self._read_id(index, at, found.pop("id", None))
        named = {key: value.named(f'{label} "{key}"') for key, value in found.items()}
        body = _StepReader(index, label, named, self._links)
        unit = body.read()
        place = at.node.entry("id").key.place if at.node.entry("id") else at.place  # type: ignore[union-attr]
        return Draft(step_id, authored, place, at.node, "route" in named, unit, body.fields)

    def _read_id(self, index: int, step: Cursor, at: Cursor | None) -> str | None:
        text = at.node.value if at is not None and isinstance(at.node, Scalar) else None
        if at is None or not isinstance(text, str) or not text.strip():
            message = f'Step {index + 1} requires a non-empty string "id".'
            (at or step).error("step-id-missing", message, "write - id: name")
            return None
        if not _STEP_ID.fullmatch(text):
            message = (
                f'Step {index + 1} has the id "{clip(text, 80)}", which cannot be referenced from steps.<id>.output.'
            )
            at.error("step-id-invalid", message, 'use letters, digits, "_" and "-", no digit or dash first')
            return None
        first = self._first.setdefault(text, index)
        if first != index:
            at.error("step-id-duplicate", f'Duplicate step id "{text}" (first used by step {first + 1}).')
        return text


def _authored_id(node: Mapping) -> str | None:
    found = node.get("id")
    return found.text if isinstance(found, Scalar) and found.text else None


class _StepReader:
    """Reads the keys of one step but its id; the results are in `fields`."""

    def __init__(self, index: int, label: str, found: dict[str, Cursor], links: Links) -> None:
        self._index = index
        self._label = label
        self._found = found
        self._links = links
        self.fields: dict[str, Any] = {}

    def read(self) -> ReadUnit:
        self._refuse_pairs()
        unit = ReadUnit()
        if "unit" in self._found:
            unit = read_unit(self._found["unit"], self._label)
        if "map" in self._found:
            unit = self._read_map(self._found["map"])
        if "route" in self._found:
            self.fields["route"] = read_route(self._found["route"], self._label, self._index, self._links)
        if "inputs" in self._found:
            self.fields["inputs"] = self._read_inputs(self._found["inputs"])
        if "output" in self._found:
            self.fields["output"] = read_schema(self._found["output"], self._found["output"].what)
        if "gate" in self._found:
            self.fields["gate"] = _read_gate(self._found["gate"])
        return unit

    def _refuse_pairs(self) -> None:
        if "map" in self._found and "route" in self._found:
            message = f'{self._label} must declare at most one of "map" or "route".'
            self._found["route"].error("step-kinds", message)
        if "route" in self._found:
            for key in ("unit", "inputs"):
                if key in self._found:
                    message = f'{self._label} is a route step; it dispatches no unit and takes no "{key}".'
                    self._found.pop(key).error("route-with-unit", message, f'leave out "{key}" or "route"')
        if "map" in self._found and "unit" in self._found:
            message = f'{self._label} has a "unit" beside "map"; the bag of a map step belongs at map.unit.'
            self._found.pop("unit").error("step-kinds", message, "move it to map: { unit: { … } }")

    def _read_map(self, at: Cursor) -> ReadUnit:
        found = at.mapping(grammar.MAP_KEYS)
        if not isinstance(at.node, Mapping):
            return ReadUnit()
        named = {key: value.named(f'{self._label} map "{key}"') for key, value in found.items()}
        over = read_required_reference(at, named, "over", self._links, self._index)
        width = named["concurrency"].integer(1, bounds.CONCURRENCY) if "concurrency" in named else None
        reducer: Any = named["reducer"].one_of(*grammar.REDUCERS) if "reducer" in named else None
        if over is not None:
            self.fields["map"] = MapOptions(over=over, concurrency=width, reducer=reducer)
        return read_unit(named["unit"], self._label) if "unit" in named else ReadUnit()

    def _read_inputs(self, at: Cursor) -> tuple[str, ...]:
        entries = at.items()
        if not isinstance(at.node, Sequence):
            return ()
        if not entries:
            message = f"{at.what} must be a non-empty list of references."
            at.error("empty-list", message, "write inputs: [steps.<id>.output], or leave the key out")
        elif len(entries) > bounds.INPUTS:
            message = f"{at.what} holds {len(entries)} references; at most {bounds.INPUTS} are allowed."
            at.error("inputs-limit", message)
        return tuple(text for entry in entries if (text := self._read_input(entry, at.what)) is not None)

    def _read_input(self, entry: Cursor, what: str) -> str | None:
        reference = read_reference(entry.named(what), ("steps",))
        if reference is None:
            return None
        self._links.readings.append(Reading(what, reference, entry.place, self._index, "input"))
        return reference.text


def _read_gate(at: Cursor) -> GateOptions | None:
    found = at.mapping(grammar.GATE_KEYS)
    if "max_loops" not in found:
        return None
    loops = found["max_loops"].named(f'{at.what} "max_loops"').integer(1, bounds.MAX_LOOPS)
    return None if loops is None else GateOptions(max_loops=loops)

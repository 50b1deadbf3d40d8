"""The `route:` of a step → its branches, with every target noted as a link."""

from __future__ import annotations

from flowstone.formats.akm_common.document import Branch, RouteOptions
from flowstone.formats.akm_common.fields import read_required_reference, read_trimmed
from flowstone.formats.akm_common.links import Lead, Links
from flowstone.formats.akm_common.rules import whole_numbers
from flowstone.formats.akm_markdown import grammar
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor, describe
from flowstone.source.tree import Mapping, Scalar, Sequence
from flowstone.values import canonical_json, clip

_WHEN_HINT = "write when: [{ match: value, step: id }]"


def read_route(at: Cursor, label: str, step: int, links: Links) -> RouteOptions | None:
    """A route block of the step with index `step`; `label` names the step in messages."""
    found = at.mapping(grammar.ROUTE_KEYS)
    if not isinstance(at.node, Mapping):
        return None
    named = {key: value.named(f'{label} route "{key}"') for key, value in found.items()}
    value = read_required_reference(at, named, "input", links, step)
    if "when" not in named:
        at.error("missing-key", f'{at.what} requires "when": a list of branches.', _WHEN_HINT)
    branches = _Branches(step, links).read(named["when"]) if "when" in named else ()
    default = read_trimmed(named["default"]) if "default" in named else None
    if default is not None:
        links.leads.append(Lead(named["default"].what, default, named["default"].place, step))
    return None if value is None else RouteOptions(input=value, branches=branches, default_step_id=default)


class _Branches:
    """Reads the branches of one route and remembers on which line each value was matched first."""

    def __init__(self, step: int, links: Links) -> None:
        self._step = step
        self._links = links
        self._lines: dict[str, int] = {}

    def read(self, at: Cursor) -> tuple[Branch, ...]:
        if not isinstance(at.node, Sequence) or not at.node.items:
            at.error("route-when", f"{at.what} must be a non-empty list of branches.", _WHEN_HINT)
            return ()
        entries = at.items()
        if len(entries) > bounds.ROUTE_BRANCHES:
            message = f"{at.what} holds {len(entries)} branches; at most {bounds.ROUTE_BRANCHES} are allowed."
            at.error("route-limit", message)
        return tuple(branch for entry in entries if (branch := self._branch(entry, at.what)))

    def _branch(self, at: Cursor, what: str) -> Branch | None:
        at = at.named(f"{what} branch")
        found = at.mapping(grammar.BRANCH_KEYS)
        if not isinstance(at.node, Mapping):
            return None
        for key in grammar.BRANCH_KEYS:
            if key not in found:
                at.error("missing-key", f'{at.what} requires "{key}".', "write { match: value, step: id }")
        match = self._match(found["match"].named(f'{what} "match"')) if "match" in found else None
        target = read_trimmed(found["step"].named(f'{what} "step"')) if "step" in found else None
        if target is not None:
            self._links.leads.append(Lead(what, target, found["step"].place, self._step))
        return None if match is None or target is None else Branch(match=match, step_id=target)

    def _match(self, at: Cursor) -> str | None:
        text = _match_text(at)
        if text is None:
            return None
        if text in self._lines:
            message = f'{at.what} repeats the value "{clip(text, 80)}" (first matched on line {self._lines[text]}).'
            at.error("route-duplicate", message, 'values are compared as text: 1 and "1" are the same')
        self._lines.setdefault(text, at.place.line)
        return text


def _match_text(at: Cursor) -> str | None:
    """A scalar as the text that routes compare: `1`, `true`, the string itself."""
    value = at.value() if isinstance(at.node, Scalar) else None
    if value is None:
        message = f"{at.what} must be a string, number or boolean, got {describe(at.node)}."
        at.error("route-match", message)
        return None
    return value if isinstance(value, str) else canonical_json(whole_numbers(value))

"""The text of a task file → its root mapping, within the bounds that task files have."""

from __future__ import annotations

from flowstone.diagnostics import Place, Report
from flowstone.formats.akm_common.rules import utf8_size
from flowstone.formats.akm_github.grammar import UNSAFE_KEYS
from flowstone.formats.akm_task import grammar
from flowstone.plan import bounds
from flowstone.source.tree import Mapping, Node, Scalar, Sequence
from flowstone.source.yaml import YamlRules, read_yaml
from flowstone.values import clip

RULES = YamlRules(max_nodes=grammar.NODES, max_depth=grammar.DEPTH)


def read_tree(text: str, report: Report) -> Mapping | None:
    """The root, or None with a report of all that is wrong with the YAML itself."""
    if utf8_size(text) > bounds.SOURCE_BYTES:
        report.error("source-size-limit", "The file has over 1 MiB.", Place())
        return None
    root = read_yaml(text, RULES, report)
    if root is None:
        return None
    if not isinstance(root, Mapping):
        report.error("not-a-task", "A task is a mapping of keys such as version, run and uses.", root.place)
        return None
    _check(root, report)
    return None if report.failed else root


def _check(node: Node, report: Report) -> None:
    match node:
        case Scalar():
            if utf8_size(node.text) > grammar.TEXT_BYTES:
                report.error("yaml-text-limit", "A text has over 256 KiB.", node.place)
        case Sequence(items=items):
            if len(items) > grammar.ITEMS:
                report.error("yaml-item-limit", f"A list has {len(items)} items; at most {grammar.ITEMS}.", node.place)
            for item in items:
                _check(item, report)
        case Mapping(entries=entries):
            if len(entries) > grammar.ENTRIES:
                message = f"A mapping has {len(entries)} keys; at most {grammar.ENTRIES}."
                report.error("yaml-key-limit", message, node.place)
            for entry in entries:
                if entry.name in UNSAFE_KEYS:
                    report.error("unsafe-key", f'"{clip(entry.name, 40)}" is not allowed as a key.', entry.key.place)
                _check(entry.value, report)

"""The text of `commands/<name>.md` or `agents/<name>.md` → its words and the hints in its front matter."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.diagnostics import Diagnostic, Place, Report, errors_of
from flowstone.errors import CompileError
from flowstone.formats.akm_common.fields import read_engine, read_object, read_trimmed
from flowstone.formats.akm_common.rules import utf8_size
from flowstone.formats.akm_prompts.template import foreign_construct
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.file import SourceText
from flowstone.source.markdown import FrontMatter, opens_front_matter, split_front_matter
from flowstone.source.tree import Mapping, Scalar
from flowstone.source.yaml import YamlRules, read_yaml

YAML_RULES = YamlRules(aliases=True, anchors=True, tags=True, text_keys_only=False, max_depth=256)
TYPES = {"commands": "command", "agents": "agent"}
"""What the front matter may say as `type`, by the folder of the asset."""


class PromptAsset(msgspec.Struct, frozen=True):
    """A command's template or an agent's persona, blank lines at both ends trimmed, and its hints.

    `tools` are names of tools that the author wants used without asking.
    """

    text: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    agent: str | None = None
    engine: str | None = None
    model: str | None = None
    inference: dict[str, Any] | None = None
    tools: tuple[str, ...] = ()


def read_prompt(shown: str, source: SourceText, family: str) -> PromptAsset:
    """The asset of a source; CompileError with every mistake. `family` is `commands` or `agents`."""
    report = Report()
    found = parse_prompt(source.text, family, report)
    if found is None:
        raise CompileError(shown, errors_of(report.sorted()), code="INVALID_FLAG_VALUE")
    return found


def diagnose_prompt(source: SourceText, family: str) -> tuple[Diagnostic, ...]:
    """All that is wrong with such a file, for lint."""
    report = Report()
    parse_prompt(source.text, family, report)
    return report.sorted()


def parse_prompt(text: str, family: str, report: Report) -> PromptAsset | None:
    """The asset of a text; None when the report holds errors. The front matter may be left out."""
    front = split_front_matter(text)
    if front is None and opens_front_matter(text):
        report.error("frontmatter-missing", "The front matter is never closed.", Place(1, 1), "end it with ---")
        return None
    if front is None:
        front = FrontMatter("", 1, text, 1)
    root = read_yaml(front.yaml, YAML_RULES, report, front.yaml_line) if front.yaml.strip() else None
    fields: dict[str, Any] = {}
    if isinstance(root, Mapping):
        fields = _hints(Cursor(root, "", report, root.place).mapping(), family)
    elif root is not None and not (isinstance(root, Scalar) and root.value is None):
        report.error("mapping-required", "The front matter must be a mapping.", Place(1, 1))
    _check_body(front, family, report)
    return None if report.failed else PromptAsset(_trimmed(front.body), **fields)


def _hints(found: dict[str, Cursor], family: str) -> dict[str, Any]:
    """The keys that mean something to a run or to a search; others belong to whoever else reads the file."""
    fields: dict[str, Any] = {}
    for key in ("description", "agent", "model"):
        if key in found and not found[key].is_null:
            fields[key] = read_trimmed(found[key])
    if "engine" in found:
        fields["engine"] = read_engine(found["engine"])
    if "inference" in found:
        fields["inference"] = read_object(found["inference"])
    for key in ("tags", "tools"):
        if key in found and not found[key].is_null:
            fields[key] = _names(found[key])
    if "type" in found:
        found["type"].one_of(TYPES[family])
    if family == "agents" and "agent" in found:
        found["agent"].error("unknown-key", 'An agent names no "agent": it is one.', "leave the key out")
    return fields


def _names(at: Cursor) -> tuple[str, ...]:
    """A list of names, or one text in which they stand behind commas."""
    if isinstance(at.node, Scalar):
        names: list[str | None] = list((at.text(empty=False) or "").split(","))
    else:
        names = [item.text(empty=False) for item in at.items()]
    return tuple(dict.fromkeys(name.strip() for name in names if name and name.strip()))


def _check_body(front: FrontMatter, family: str, report: Report) -> None:
    size = utf8_size(front.body)
    if size > bounds.INSTRUCTION_BYTES:
        message = f"the text has {size:,} bytes, over the {bounds.INSTRUCTION_BYTES:,} of one"
        report.error("instructions-too-large", message, Place(front.body_line, 1))
    if not front.body.strip():
        report.error("instructions-missing", f"The {TYPES[family]} has no text.", Place(front.body_line, 1))
    foreign = foreign_construct(front.body) if family == "commands" else None
    if foreign is not None:
        message, start = foreign
        before = front.body[:start]
        place = Place(front.body_line + before.count("\n"), start - (before.rfind("\n") + 1) + 1)
        report.error("command-template", f"The command holds {message}.", place, "say it in words")


def _trimmed(body: str) -> str:
    """Without the blank lines at both ends; inner bytes stay."""
    lines = body.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)

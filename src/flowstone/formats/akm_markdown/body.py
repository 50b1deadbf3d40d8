"""The body of a Markdown workflow joined with the steps of its front matter.

Each level-2 heading must name a step; what stands below it is the step's instructions and, behind
`### gate`, its rubric.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from flowstone.diagnostics import Place, Report
from flowstone.formats.akm_common.rules import utf8_size
from flowstone.formats.akm_markdown import grammar
from flowstone.formats.akm_markdown.steps import Draft
from flowstone.plan import bounds
from flowstone.source.cursor import suggest
from flowstone.source.markdown import Section, Sections
from flowstone.values import clip


def join_body(drafts: SequenceOf[Draft], body: Sections, report: Report) -> dict[str, Section]:
    """The section of each step by its id; reports headings and sections that break a rule."""
    found = _match_headings(drafts, body.sections, report)
    for draft in drafts:
        if draft.id is not None:
            _check_step(draft, found.get(draft.id), report)
    return found


def check_title(title: str | None, body_line: int, text: str, report: Report) -> None:
    """Refuse an H1 that begins with the old `Workflow:` prefix."""
    if title is None or not title.startswith(grammar.WORKFLOW_PREFIX):
        return
    offset = next((n for n, line in enumerate(text.split("\n")) if line.lstrip(" ").startswith("# ")), 0)
    message = f'The level-1 heading begins with "{grammar.WORKFLOW_PREFIX}"; a title has no prefix.'
    rest = title.removeprefix(grammar.WORKFLOW_PREFIX).strip()
    report.error("title-prefix", message, Place(body_line + offset, 1), f"write # {rest or 'Title'}")


def _match_headings(drafts: SequenceOf[Draft], sections: SequenceOf[Section], report: Report) -> dict[str, Section]:
    ids = [draft.id for draft in drafts if draft.id is not None]
    known = frozenset(ids)
    broken = {draft.authored for draft in drafts if draft.id is None}
    found: dict[str, Section] = {}
    for section in sections:
        _check_gates(section, report)
        if section.name in found:
            first = found[section.name].place.line
            message = f'A second section "## {clip(section.name, 80)}" (the first is on line {first}).'
            report.error("section-twice", message, section.place, "join the two sections")
        elif section.name in known:
            found[section.name] = section
        elif section.name not in broken and None not in broken:
            message = f'The heading "## {clip(section.name, 80)}" names no declared step.'
            report.error("unknown-section", message, section.place, _heading_hint(section.name, ids))
    return found


def _heading_hint(name: str, ids: SequenceOf[str]) -> str:
    return suggest(name, ids) or "a level-2 heading is exactly ## <step-id>; use ### for headings of prose"


def _check_gates(section: Section, report: Report) -> None:
    for place in section.extra_gates:
        message = f'The section "## {clip(section.name, 80)}" has a second "### gate" heading.'
        report.error("gate-twice", message, place, "a section has one gate; it runs to the section's end")


def _check_step(draft: Draft, section: Section | None, report: Report) -> None:
    step = f'Step "{draft.id}"'
    if section is None:
        if not draft.routes:
            kind = "map" if "map" in draft.fields else "unit"
            message = f'{step} is a {kind} step and must have a "## {draft.id}" body section.'
            report.error("section-missing", message, draft.place, f"add a section ## {draft.id}")
        return
    if not draft.routes and not section.text.strip():
        _no_instructions(draft, section, report)
    for what, text in (("instructions", section.text), ("rubric", section.gate_text or "")):
        if (size := utf8_size(text)) > bounds.INSTRUCTION_BYTES:
            message = f'The {what} of step "{draft.id}" have {size:,} bytes; at most 256 KiB are allowed.'
            report.error("instructions-too-large", message, section.place)


def _no_instructions(draft: Draft, section: Section, report: Report) -> None:
    """A mistake, unless a command's section was begun with a gate that is still to be written."""
    message = f'The section of step "{draft.id}" holds no instructions.'
    hint = "write what the step does below its heading"
    begun = section.gate_place is not None and section.gate_text is None
    if begun and draft.unit.exec is not None:
        report.warn("section-empty", message, section.place, hint)
    else:
        report.error("section-empty", message, section.place, hint)

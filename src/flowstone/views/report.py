"""A run as one self-contained HTML page: graph, timeline, steps with verdicts and units, outputs.

All text is made plain (no escapes of a terminal) and escaped for HTML. Long texts show their end
and tell their full size, and everything shares one allowance, so that the page stays small for a
run of ten thousand units too.
"""

from __future__ import annotations

from html import escape
from typing import Any

from flowstone.plan.model import Route
from flowstone.run.events import Status
from flowstone.run.record import RunRow
from flowstone.run.state import State, StepState
from flowstone.values import pretty_json
from flowstone.views.graph import graph_svg, kind_of
from flowstone.views.overview import (
    UnitRow,
    duration_of,
    headline,
    iso_time,
    skip_note,
    step_duration,
    unit_counts,
    unit_rows,
)
from flowstone.views.report_style import STYLE
from flowstone.views.text import one_line, plain_text, spell_count, spell_ms, spell_size, tail
from flowstone.views.timeline import timeline
from flowstone.views.timeline_svg import timeline_svg
from flowstone.views.usage import budget_warnings, run_usage, step_usage, usage_object, usage_text
from flowstone.views.words import Word, plain_word

TEXT_CHARS = 20_000
"""Characters that one text shows of itself."""
PAGE_BYTES = 1_000_000
"""Bytes that all texts of a page may take together, as they stand in it."""
UNIT_ROWS = 1_200
"""Unit rows of a page, the failed ones of each step first."""
BARS = 2_500
"""Bars of the whole timeline."""
SCRUB = 2_000_000
"""Characters of one text that are looked at: its end."""


def report_page(row: RunRow, state: State, now: int, word: Word = plain_word) -> str:
    """The page of a run, whole; `now` is in milliseconds, `word` gives the words for statuses."""
    page = _Page(word)
    title = one_line(row.record.title or row.record.ref)
    body = [
        *_header(page, row, state, now, title),
        '<h2>Graph</h2><div class="scroll">',
        graph_svg(state.plan, {step.id: step.status.value for step in state.order}, lambda step: f"#step-{step}"),
        '</div><h2>Timeline</h2><div class="scroll">',
        timeline_svg(timeline(state, now, max(12, BARS // max(1, len(state.order)))), word),
        "</div>",
        *_outputs(page, state),
        "<h2>Steps</h2>",
        *(part for step in state.order for part in _step(page, state, step, now)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}: {escape(word(state.status.value))}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


class _Page:
    """What is left of the page's allowances, and how texts are put on it."""

    def __init__(self, word: Word) -> None:
        self.word = word
        self.left = PAGE_BYTES
        self.rows = UNIT_ROWS

    def text(self, text: str, kind: str = "") -> str:
        """A block of text: its end, within the allowances, with its full size when it was cut."""
        seen = tail(text, SCRUB)
        shown = tail(plain_text(seen.text), max(200, min(TEXT_CHARS, self.left)))
        body = escape(shown.text)
        self.left -= len(body.encode("utf-8", "replace"))
        note = ""
        if shown.cut or seen.cut:
            note = f'<p class="dim">The last {spell_size(len(shown.text))} of {spell_size(len(text))} characters.</p>'
        return f'{note}<pre class="{kind}">{body}</pre>'

    def value(self, value: Any) -> str:
        return self.text(value if isinstance(value, str) else pretty_json(value))

    def badge(self, status: str) -> str:
        return f'<span class="badge b-{escape(status)}">{escape(self.word(status))}</span>'


def _header(page: _Page, row: RunRow, state: State, now: int, title: str) -> list[str]:
    record = row.record
    facts = [
        ("Run", record.id),
        ("Workflow", record.ref),
        ("Source", record.source_path),
        ("Started", iso_time(record.created_at)),
        ("Ended", iso_time(state.closed_at)),
        ("Duration", spell_ms(duration_of(state, now))),
        ("Used", usage_text(usage_object(run_usage(state)).get("usage"))),
        ("Plan hash", record.plan_hash),
    ]
    words = headline(state)
    listed = "".join(f"<dt>{name}</dt><dd>{escape(one_line(str(fact), 500))}</dd>" for name, fact in facts if fact)
    parts = [f"<h1>{escape(title)} {page.badge(state.status.value)}</h1>"]
    if words != state.status.value:
        parts.append(f'<p class="dim">{escape(words)}</p>')
    if state.plan.description:
        parts.append(f'<p class="dim">{escape(one_line(state.plan.description, 1_000))}</p>')
    parts.append(f"<dl>{listed}</dl>")
    parts += [f'<p class="bad">{escape(warning)}</p>' for warning in budget_warnings(state)]
    if record.params:
        parts += ["<details><summary>Parameters</summary>", page.value(record.params), "</details>"]
    if state.error:
        parts.append(page.text(state.error, "bad"))
    return parts


def _outputs(page: _Page, state: State) -> list[str]:
    if not state.outputs:
        return []
    parts = ["<h2>Outputs</h2>"]
    for name, value in state.outputs.items():
        parts += [f"<h3>{escape(one_line(str(name)))}</h3>", page.value(value)]
    return parts


def _step(page: _Page, state: State, step: StepState, now: int) -> list[str]:
    opened = " open" if step.status in (Status.FAILED, Status.HELD, Status.OPEN) else ""
    took = spell_ms(step_duration(step, now))
    used = usage_text(usage_object(step_usage(state, step)).get("usage"))
    parts = [
        f'<details class="step" id="step-{escape(step.id)}"{opened}><summary><strong>{escape(step.id)}</strong> '
        f"{page.badge(step.status.value)} "
        f'<span class="dim">{escape(kind_of(step.plan))}{_count(step)} {took} {used}</span></summary>'
    ]
    if (note := skip_note(step)) is not None:
        parts.append(f'<p class="dim">{escape(one_line(note, 500))}</p>')
    if step.error:
        reason = f"{step.reason.value}: " if step.reason else ""
        parts.append(page.text(reason + step.error, "bad"))
    if step.summary and step.summary != step.error:
        parts.append(f'<p class="dim">{escape(one_line(step.summary, 1_000))}</p>')
    parts += _verdict(page, step)
    if step.artifact is not None and not isinstance(step.plan.action, Route):
        parts += ["<p>Output</p>", page.value(step.artifact)]
    if step.blob is not None:
        parts.append(f'<p class="dim">The output is large; it is kept under digest {escape(step.blob)}.</p>')
    parts += _units(page, state, step, now)
    parts.append("</details>")
    return parts


def _count(step: StepState) -> str:
    if not step.fans_out or step.opened_at is None:
        return ""
    counts = unit_counts(step)
    failed = f", {counts['failed']:,} failed" if counts["failed"] else ""
    return f", {spell_count(counts['total'], 'unit')}{failed}"


def _verdict(page: _Page, step: StepState) -> list[str]:
    """What was decided about the step: a route's choice, votes, a judge's words."""
    if not isinstance(step.detail, dict):
        return []
    shown = {name: value for name, value in step.detail.items() if name not in ("note", "error")}
    return ["<p>Verdict</p>", page.value(shown)] if shown else []


def _units(page: _Page, state: State, step: StepState, now: int) -> list[str]:
    rows = unit_rows(state, step, now)
    if not rows:
        return []
    chosen = sorted(rows, key=lambda unit: (unit.status == "succeeded", unit.index))[: min(page.rows, 300)]
    page.rows -= len(chosen)
    parts = ["<table><tr><th>Unit</th><th>Status</th><th>Attempts</th><th>Took</th><th>Used</th><th>Failure</th></tr>"]
    parts += [_unit(page, unit) for unit in chosen]
    parts.append("</table>")
    if len(chosen) < len(rows):
        parts.append(f'<p class="dim">{len(rows) - len(chosen):,} more of {spell_count(len(rows), "unit")}.</p>')
    return parts


def _unit(page: _Page, unit: UnitRow) -> str:
    failure = ""
    if unit.reason:
        text = unit.diagnostic or unit.error or ""
        failure = escape(unit.reason) + (page.text(text, "bad") if text and page.left > 0 else "")
    failure += "".join(f'<p class="dim">{escape(one_line(note, 400))}</p>' for note in unit.notes)
    if unit.exchange and page.left > 0:
        said = "".join(page.text(e.request, "dim") + page.text(e.answer) for e in unit.exchange)
        failure += f"<details><summary>asked and said</summary>{said}</details>"
    return (
        f"<tr><td>{escape(one_line(unit.unit, 120))}</td><td>{page.badge(unit.status)}</td>"
        f"<td>{unit.attempts}</td><td>{spell_ms(unit.duration)}</td><td>{usage_text(unit.usage)}</td><td>{failure}</td></tr>"
    )

"""A timeline as a picture (SVG): a row a step, a bar an attempt, lighter bars for waits."""

from __future__ import annotations

from html import escape

from flowstone.run.events import Status
from flowstone.views.text import short_unit, spell_ms
from flowstone.views.timeline import Bar, BarKind, Row, Timeline
from flowstone.views.words import RUNNING, Word, plain_word

LABEL, PLOT, LANE, ROW_GAP, TOP = 180, 900, 9, 8, 22
"""Measures of the picture, in pixels."""
LANES = 24
"""Lanes that a row shows; bars of further lanes share the last one."""
TICKS = 6


def timeline_svg(laid: Timeline, word: Word = plain_word) -> str:
    """Draw a timeline; it stays legible and small whatever the number of bars that it holds.

    `word` gives the words for the statuses that a pointer is shown.
    """
    heights = [max(1, min(row.lanes, LANES)) * LANE + ROW_GAP for row in laid.rows]
    width, height = LABEL + PLOT + 16, TOP + sum(heights) + 4
    parts = [
        f'<svg class="timeline" role="img" aria-label="Timeline of units and waits" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
    ]
    parts += _axis(laid.length, height)
    top = TOP
    for row, tall in zip(laid.rows, heights, strict=True):
        parts.append(_label(row, top))
        parts += [_bar(bar, top, laid.length, word) for bar in row.bars]
        top += tall
    parts.append("</svg>")
    return "".join(parts)


def _axis(length: int, height: int) -> list[str]:
    parts = []
    for tick in range(TICKS + 1):
        x = LABEL + PLOT * tick // TICKS
        anchor = "end" if tick == TICKS else "middle"
        parts.append(f'<line x1="{x}" y1="16" x2="{x}" y2="{height}"/>')
        parts.append(
            f'<text class="axis" x="{x}" y="11" text-anchor="{anchor}">{spell_ms(length * tick // TICKS)}</text>'
        )
    return parts


def _label(row: Row, top: int) -> str:
    name = row.step if len(row.step) <= 24 else row.step[:23] + "…"
    more = f" (+{row.hidden:,})" if row.hidden else ""
    return f'<text x="0" y="{top + 9}">{escape(name)}{more}</text>'


def _bar(bar: Bar, top: int, length: int, word: Word) -> str:
    scale = PLOT / max(length, 1)
    x = LABEL + bar.start * scale
    wide = max((bar.end - bar.start) * scale, 1.0)
    kind = bar.status.value if bar.kind is BarKind.UNIT else bar.kind.value
    shown = _unit_word(bar.status, word) if bar.kind is BarKind.UNIT else f"{bar.kind.value}ing"
    y = top + min(bar.lane, LANES - 1) * LANE
    times = f"{spell_ms(bar.end - bar.start)} from {spell_ms(bar.start)}"
    return (
        f'<rect class="t-{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LANE - 2}">'
        f"<title>{escape(short_unit(bar.label))}: {shown}, {times}</title></rect>"
    )


def _unit_word(status: Status, word: Word) -> str:
    """A language may have no word of its own for a unit that runs."""
    return RUNNING if status is Status.OPEN else word(status)

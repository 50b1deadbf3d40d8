"""The envelopes of the run verbs as text for people: a line for the run, one a step, one a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowstone.cli.render.formats import Envelope, Format, Writer
from flowstone.cli.render.terminal import neutral, one_line
from flowstone.views.text import short_unit
from flowstone.views.usage import usage_text

if TYPE_CHECKING:
    from flowstone.run.record import RunRow
    from flowstone.run.state import State
    from flowstone.views.words import Word

GLYPHS = {
    "completed": "✓",
    "active": "→",
    "blocked": "⚠",
    "failed": "✗",
    "skipped": "-",
    "pending": " ",
    "running": "…",
}


def run_text(envelope: dict[str, Any]) -> str:
    """A run with its steps (status) or with the steps of a drive (run)."""
    run = envelope.get("run")
    if run is None:
        return one_line(f"skipped: {envelope['skipped']['message']}")
    lines = [f"{GLYPHS.get(run['status'], '?')} {one_line(run['workflowTitle'])}  {run['status']}  {run['id']}"]
    lines += [f"  {line}" for line in _facts(run, envelope)]
    lines += [_step_line(step) for step in envelope.get("workflow", {}).get("steps", [])]
    lines += [_executed_line(step) for step in envelope.get("executed", [])]
    if envelope.get("children"):
        lines += ["", "child runs:", *_child_lines(envelope["children"], "  ")]
    if envelope.get("childBlocked"):
        lines += ["", *_commands(envelope["childBlocked"]["resume"], envelope["childBlocked"]["then"], "  ")]
    if envelope.get("units"):
        lines += ["", *(_unit_line(unit) for unit in envelope["units"])]
    return "\n".join(lines)


def runs_text(envelope: dict[str, Any]) -> str:
    """One line a run."""
    if not envelope["runs"]:
        return "No runs."
    return "\n".join(_run_line(run) for run in envelope["runs"])


def _run_line(run: dict[str, Any]) -> str:
    ref = one_line(run["workflowRef"])
    return f"{GLYPHS.get(run['status'], '?')} {run['id']}  {run['status']:<9}  {run['createdAt']}  {ref}"


def _facts(run: dict[str, Any], envelope: dict[str, Any]) -> list[str]:
    lines = []
    if run["currentStepId"] is not None:
        lines.append(f"at step {run['currentStepId']}")
    if used := usage_text(envelope.get("usage")):
        lines.append(f"used {used}")
    if envelope.get("aborted"):
        lines.append("stopped by the time limit" if envelope.get("timedOut") else "stopped on request")
    if "outputs" in run:
        from flowstone.values import pretty_json

        lines += neutral(f"outputs: {pretty_json(run['outputs'])}").split("\n")
    return lines


def _step_line(step: dict[str, Any]) -> str:
    about = step.get("notes") or step.get("summary") or ""
    used = usage_text(step.get("usage"))
    words = [step["id"], step["status"], *([used] if used else []), one_line(short_unit(about))]
    return f"  {GLYPHS.get(step['status'], '?')} {'  '.join(words)}".rstrip()


def _child_lines(children: list[dict[str, Any]], front: str) -> list[str]:
    """The tree of child runs, two spaces a level; a blocked one has the commands to go on below it."""
    lines = []
    for child in children:
        words = [child["runId"], child["status"], one_line(child["workflowRef"]), f"(step {child['stepId']})"]
        lines.append(f"{front}{GLYPHS.get(child['status'], '?')} {'  '.join(words)}")
        if "resume" in child:
            lines += _commands(child["resume"]["command"], child["resume"]["then"], f"{front}  ")
        lines += _child_lines(child.get("children", []), f"{front}  ")
    return lines


def _commands(resume: str, then: str, front: str) -> list[str]:
    return [f"{front}resume: {resume}", f"{front}then:   {then}"]


def _executed_line(step: dict[str, Any]) -> str:
    return f"  {'✓' if step['ok'] else '✗'} {step['stepId']}  {one_line(short_unit(step['summary'] or ''))}".rstrip()


def _unit_line(unit: dict[str, Any]) -> str:
    words = [GLYPHS.get(unit["status"], "?"), short_unit(unit["unitId"]), unit["status"], unit["failureReason"] or ""]
    words += [used] if (used := usage_text(unit.get("usage"))) else []
    line = ("  " + "  ".join([*words, one_line(short_unit(unit["diagnostic"] or ""))])).rstrip()
    return "\n".join([line, *(f"      note: {one_line(short_unit(note))}" for note in unit.get("notes", ()))])


def writers(row: RunRow, state: State, word: Word, now: int) -> dict[Format, Writer]:
    """The writers of a run's envelope: text from the envelope, HTML as the page of the run itself."""

    def page(_: Envelope) -> str:
        from flowstone.views.report import report_page

        return report_page(row, state, now, word)

    return {Format.TEXT: run_text, Format.HTML: page}

"""The lint view: the diagnostics of a bundle's workflows as the envelope of `akm lint`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from flowstone.diagnostics import SHOWN, WHOLE_FILE, Diagnostic, Severity

STRUCTURE = "invalid-workflow-structure"
TASK = "invalid-task-yaml"
PROMPT = "invalid-prompt-asset"
WARNING = "workflow-warning"
MISSING_UPDATED = "missing-updated"
DANGEROUS_KEY = "dangerous-env-key"
INVALID_ENV = "invalid-env-file"


class Linted(msgspec.Struct, frozen=True):
    """A file that was looked at. `undated`: it has no `updated:`; `dated`: it has been given one.

    Of an env file: the keys with their lines that make programs run other code, and why it cannot be read.

    `issue` is what its mistakes are called.
    """

    file: str
    diagnostics: tuple[Diagnostic, ...] = ()
    undated: bool = False
    dated: bool = False
    dangerous: tuple[tuple[str, int], ...] = ()
    unreadable: str | None = None
    issue: str = STRUCTURE


def lint_view(files: Iterable[Linted]) -> dict[str, Any]:
    """The envelope (akm facts 24): what was fixed, what is wrong by file and line, and warnings."""
    fixed: list[dict[str, Any]] = []
    flagged: list[dict[str, Any]] = []
    warnings: list[dict[str, Any]] = []
    for linted in files:
        errors = [d for d in linted.diagnostics if d.severity is Severity.ERROR]
        flagged += [_finding(linted.file, linted.issue, d) for d in errors[:SHOWN]]
        if len(errors) > SHOWN:
            flagged.append(_hidden(linted.file, linted.issue, len(errors)))
        warnings += [_finding(linted.file, WARNING, d) for d in linted.diagnostics if d.severity is Severity.WARNING]
        flagged += _env_findings(linted)
        if linted.dated:
            fixed.append(_undated(linted.file, fixed=True))
        elif linted.undated:
            flagged.append(_undated(linted.file, fixed=False))
    summary = {"fixed": len(fixed), "flagged": len(flagged)}
    if warnings:
        summary["warnings"] = len(warnings)
    return {
        "ok": not flagged,
        "fixed": fixed,
        "flagged": flagged,
        "warnings": warnings,
        "summary": summary,
        "schemaVersion": 1,
    }


def _finding(file: str, issue: str, diagnostic: Diagnostic) -> dict[str, Any]:
    detail = diagnostic.message
    if diagnostic.hint and diagnostic.hint not in detail:
        detail = f"{detail} {diagnostic.hint}"
    finding = {"file": file, "issue": issue, "code": diagnostic.code, "detail": detail, "fixed": False}
    place = diagnostic.place
    return finding if place == WHOLE_FILE else {**finding, "line": place.line, "column": place.column}


def _env_findings(linted: Linted) -> Iterator[dict[str, Any]]:
    for name, line in linted.dangerous:
        detail = f"{name} makes programs run other code; name what a step needs differently, or pass it on its own."
        yield {"file": linted.file, "issue": DANGEROUS_KEY, "detail": detail, "fixed": False, "line": line}
    if linted.unreadable is not None:
        yield {"file": linted.file, "issue": INVALID_ENV, "detail": linted.unreadable, "fixed": False}


def _hidden(file: str, issue: str, total: int) -> dict[str, Any]:
    detail = f"{total - SHOWN} more of {total} errors are not shown; mend the ones above first."
    return {"file": file, "issue": issue, "detail": detail, "fixed": False}


def _undated(file: str, *, fixed: bool) -> dict[str, Any]:
    detail = "`updated:` was added." if fixed else "The front matter has no `updated:`; --fix adds today's date."
    return {"file": file, "issue": MISSING_UPDATED, "detail": detail, "fixed": fixed}

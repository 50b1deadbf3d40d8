"""Texts around workflows: diagnostics as text, JSON and SARIF, a new workflow's template, targets and time limits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flowstone.diagnostics import WHOLE_FILE, Diagnostic
from flowstone.errors import InputError, SourceError, UsageError
from flowstone.source.remote import is_remote

SOURCE_SUFFIXES = (".md", ".yml", ".yaml")


def diagnostics_text(path: str, text: str, diagnostics: Sequence[Diagnostic], *, colour: bool = False) -> str:
    """Diagnostics of a file as lines of text, each with its source line and a caret."""
    from flowstone.source.report import render_text

    return render_text(path, text, diagnostics, colour)


def diagnostics_json(path: str, diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics of a file as JSON objects."""
    from flowstone.source.report import to_json

    return to_json(path, diagnostics)


def diagnostics_sarif(files: Sequence[tuple[str, Sequence[Diagnostic]]]) -> dict[str, Any]:
    """Diagnostics of several files as one SARIF 2.1.0 log."""
    from flowstone.source.report import to_sarif

    return to_sarif(files)


def is_path(target: str) -> bool:
    """Whether a target names a file (or a folder, which is none), not an asset ref."""
    return (
        is_remote(target)
        or target.endswith(SOURCE_SUFFIXES)
        or target.startswith((".", "/", "~"))
        or os.path.isfile(target)
        or (os.path.exists(target) and not _is_ref(target))
    )


def _is_ref(target: str) -> bool:
    from flowstone.assets.refs import is_ref

    return is_ref(target)


def unreadable(target: str, error: SourceError | UsageError) -> Diagnostic:
    """What keeps a target from being read, as a diagnostic about the file as a whole."""
    message = error.message.removeprefix(f"{target}: ")
    return Diagnostic(error.code.lower().replace("_", "-"), message, WHOLE_FILE, error.hint)


def workflow_template(name: str, updated: str) -> str:
    """The text of a new akm workflow; `updated` is a date. Its modeline names the published schema."""
    from importlib.resources import files

    from flowstone.formats.akm_common.dialect import template

    return template(name, updated, str(files("flowstone") / "schemas" / "akm-workflow.json"))


def timeout_of(text: str) -> int | None:
    """Milliseconds of a time limit such as "90s" or "10m", None for "none"; InputError for any other text."""
    from flowstone.expr.duration import DurationProblem, parse_timeout

    try:
        return parse_timeout(text)
    except DurationProblem as error:
        raise InputError(f"Invalid value for --timeout: {error}") from None

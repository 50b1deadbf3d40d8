"""The `unit:` bag of a step and the `defaults:` that units inherit → options of the document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from flowstone.formats.akm_common.document import Defaults, Exec, Retries, UnitOptions
from flowstone.formats.akm_common.fields import (
    read_engine,
    read_llm,
    read_schema,
    read_timeout,
    read_trimmed,
)
from flowstone.formats.akm_markdown import grammar
from flowstone.formats.akm_markdown.command import read_exec
from flowstone.plan import bounds
from flowstone.run.outcome import RETRYABLE
from flowstone.source.cursor import Cursor, suggest
from flowstone.values import clip


class ReadUnit(msgspec.Struct, frozen=True):
    """What a unit bag holds: its options, and the command if it has one.

    `commands` tells that an `exec` stands there, even one that could not be read.
    """

    options: UnitOptions | None = None
    exec: Exec | None = None
    commands: bool = False


def read_unit(at: Cursor, step: str) -> ReadUnit:
    """A unit bag; `step` names the step in messages (`Step "a"`)."""
    found = {key: value.named(f'{step} unit "{key}"') for key, value in at.mapping(grammar.UNIT_KEYS).items()}
    command = found.pop("exec", None)
    if command is not None:
        _refuse_engine_keys(found, step)
    options = _options(found)
    return ReadUnit(
        UnitOptions(**options) if options else None,
        None if command is None else read_exec(command, step),
        command is not None,
    )


def read_defaults(at: Cursor) -> Defaults | None:
    options = _options(at.mapping(grammar.DEFAULTS_KEYS))
    return Defaults(**options) if options else None


def _refuse_engine_keys(found: dict[str, Cursor], step: str) -> None:
    for key in grammar.ENGINE_ONLY_KEYS:
        at = found.pop(key, None)
        if at is not None:
            message = f'{step} unit "{key}" stands beside "exec": a command names no engine.'
            at.error("exec-with-engine", message, f'leave out "{key}" or "exec"')


def _options(found: dict[str, Cursor]) -> dict[str, Any]:
    options = {}
    for key, at in found.items():
        value = _READERS[key](at)
        if value is not None or key == "timeout":
            options["timeout_ms" if key == "timeout" else key] = value
    return options


def _read_retry(at: Cursor) -> Retries | None:
    found = at.mapping(grammar.RETRY_KEYS)
    for key in grammar.RETRY_KEYS:
        if key not in found:
            at.error("missing-key", f'{at.what} requires "{key}".', "write retry: { max: 1, on: [timeout] }")
    if len(found) < len(grammar.RETRY_KEYS):
        return None
    extra = found["max"].named(f'{at.what} "max"').integer(0, bounds.RETRIES)
    reasons = _read_reasons(found["on"].named(f'{at.what} "on"'))
    return None if extra is None or reasons is None else Retries(max=extra, on=reasons)


def _read_reasons(at: Cursor) -> tuple[str, ...] | None:
    entries = at.items()
    if not entries:
        at.error("empty-list", f"{at.what} must be a non-empty list of failure reasons.", _reasons_hint())
        return None
    reasons = [_read_reason(entry, at.what) for entry in entries]
    return None if None in reasons else tuple(reason for reason in reasons if reason is not None)


def _read_reason(entry: Cursor, what: str) -> str | None:
    reason = entry.named(f"{what} entry").text()
    if reason is None:
        return None
    if reason not in RETRYABLE:
        message = f'{what} holds "{clip(reason, 80)}", which is no failure reason that may be retried.'
        entry.error("unknown-reason", message, suggest(reason, RETRYABLE) or _reasons_hint())
        return None
    return reason


def _reasons_hint() -> str:
    return "the reasons are " + ", ".join(RETRYABLE)


def _read_env(at: Cursor) -> tuple[str, ...] | None:
    refs = [read_trimmed(entry.named(f"{at.what} entry")) for entry in at.items()]
    return None if None in refs else tuple(ref for ref in refs if ref is not None) or None


_READERS: dict[str, Callable[[Cursor], Any]] = {
    "engine": read_engine,
    "model": read_trimmed,
    "llm": read_llm,
    "timeout": read_timeout,
    "retry": _read_retry,
    "on_error": lambda at: at.one_of(*grammar.ON_ERROR),
    "output": lambda at: read_schema(at, at.what),
    "env": _read_env,
    "isolation": lambda at: at.one_of(*grammar.ISOLATIONS),
}

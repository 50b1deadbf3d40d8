"""The text of a task file → task: the parser of `tasks/<id>.yml`, version 4, older ones converted.

Every mistake is reported at its place. `read_task` raises what commands show.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from flowstone.diagnostics import Diagnostic, Report, errors_of
from flowstone.errors import CompileError
from flowstone.expr.duration import DurationProblem, parse_timeout
from flowstone.formats.akm_common.document import Timeout
from flowstone.formats.akm_common.fields import read_engine, read_object, read_schema, read_trimmed
from flowstone.formats.akm_common.rules import env_name_problem
from flowstone.formats.akm_common.targets import Family
from flowstone.formats.akm_task import grammar
from flowstone.formats.akm_task.convert import converted
from flowstone.formats.akm_task.document import Dispatch, Task
from flowstone.formats.akm_task.inputs import read_inputs
from flowstone.formats.akm_task.schedules import read_schedules
from flowstone.formats.akm_task.target import read_target
from flowstone.formats.akm_task.tree import read_tree
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.file import SourceText
from flowstone.source.tree import Mapping, Scalar

NOT_A_TASK = "not-a-task"
UNSUPPORTED = "task-version-unsupported"
_HOURS = re.compile(r"([0-9]{1,10})h")


def read_task(shown: str, source: SourceText) -> tuple[Task, tuple[Diagnostic, ...]]:
    """The task of a source, and its warnings; CompileError with every mistake for an unsound one."""
    report = Report()
    task = parse_task(source.text, report)
    found = report.sorted()
    if task is None:
        raise CompileError(shown, errors_of(found), code=error_code(found))
    return task, found


def error_code(found: tuple[Diagnostic, ...]) -> str:
    """The error code of a task with these mistakes: an unsupported version has one of its own."""
    unsupported = any(diagnostic.code == UNSUPPORTED for diagnostic in errors_of(found))
    return "TASK_SCHEMA_VERSION_UNSUPPORTED" if unsupported else "TASK_SOURCE_INVALID"


def parse_task(text: str, report: Report) -> Task | None:
    """The task of a text; None when the report holds errors."""
    root = read_tree(text, report)
    if root is None:
        return None
    version = _version(root, report)
    if version is None:
        return None
    if version != grammar.VERSION:
        root = converted(root, version, report)
    if root is None:
        return None
    root = _without_removed(root, report)
    task = _Reader(Cursor(root, "", report, root.place)).read(version)
    return None if report.failed else task


def _version(root: Mapping, report: Report) -> int | None:
    """The version, or None with a report: a number that we can read is needed."""
    node = root.get("version")
    if node is None:
        if root.get("on") is not None and root.get("jobs") is not None:
            message = "This is a workflow (on and jobs), not a task: it belongs below workflows/."
            report.error(NOT_A_TASK, message, root.place)
            return None
        report.error("missing-key", 'A task requires "version".', root.place, "write version: 4")
        return None
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        report.error("invalid-version", '"version" must be a number.', node.place, "write version: 4")
        return None
    if value not in (grammar.VERSION, *grammar.OLD_VERSIONS):
        message = f'"version" {value} is not supported: tasks have version 4; 2 and 3 are converted.'
        report.error(UNSUPPORTED, message, node.place, "write version: 4")
        return None
    return int(value)


def _without_removed(root: Mapping, report: Report) -> Mapping:
    """The tree without keys of the past, each of which is reported with what takes its place."""
    for entry in root.entries:
        if entry.name in grammar.REMOVED:
            message = f'"{entry.name}" is no key of a task any more.'
            report.error("removed-key", message, entry.key.place, grammar.REMOVED[entry.name])
    return Mapping(tuple(entry for entry in root.entries if entry.name not in grammar.REMOVED), root.place)


class _Reader:
    def __init__(self, at: Cursor) -> None:
        self._at = at
        self._found = at.mapping(grammar.KEYS)

    def read(self, version: int) -> Task:
        target = read_target(self._at, self._found)
        inputs = read_inputs(self._found["inputs"]) if "inputs" in self._found else ()
        schedules = read_schedules(self._found["schedule"], inputs) if "schedule" in self._found else ()
        return Task(
            version=version,
            target=target,
            **{key: self._text(key) for key in grammar.TEXT_KEYS},
            tags=self._texts("tags"),
            inputs=inputs,
            declares_inputs="inputs" in self._found,
            schedules=schedules,
            dispatch=self._dispatch(target.family),
            timeout_ms=self._timeout(),
            redact=self._redact(),
            max_steps=self._integer("maxSteps", 1, None),
            max_retries=self._integer("maxRetries", 0, grammar.RETRIES),
        )

    def _dispatch(self, family: Family | None) -> Dispatch:
        found = self._found
        fields: dict[str, Any] = {
            key: read_trimmed(found[key]) for key in grammar.DISPATCH_TEXTS if key in found and not found[key].is_null
        }
        if "engine" in found:
            fields["engine"] = read_engine(found["engine"])
        if "inference" in found:
            fields["inference"] = read_object(found["inference"])
        if "tools" in found:
            fields["tools"] = _tools(found["tools"])
        if "output" in found:
            if family not in (Family.BUILTIN, Family.COMMAND):
                message = '"output" belongs to a task whose target is akm/command or a command.'
                found["output"].error("output-unsupported", message, "leave it out; a workflow declares outputs itself")
            else:
                fields["output"] = read_schema(found["output"], 'The task "output"')
        return Dispatch(**fields)

    def _text(self, key: str) -> str | None:
        return self._found[key].text(empty=False) if key in self._found else None

    def _texts(self, key: str) -> tuple[str, ...]:
        items = self._found[key].items() if key in self._found else []
        texts = [item.text(empty=False) for item in items]
        return tuple(text.strip() for text in texts if text is not None)

    def _integer(self, key: str, low: int, high: int | None) -> int | None:
        return self._found[key].integer(low, high) if key in self._found else None

    def _redact(self) -> tuple[str, ...]:
        names = self._texts("redact")
        at = self._found.get("redact")
        if at is not None:
            for name in names:
                if (problem := env_name_problem(name)) is not None:
                    at.error("invalid-redact", f"{at.what} {problem}.")
            if len(set(names)) != len(names):
                at.error("invalid-redact", f"{at.what} names a variable twice.")
            if len(names) > grammar.REDACTED:
                at.error("invalid-redact", f"{at.what} has {len(names)} names; at most {grammar.REDACTED}.")
        return names

    def _timeout(self) -> Timeout:
        """Milliseconds; null, 0 and `none` are no limit."""
        at = self._found.get("timeout")
        if at is None:
            return UNSET
        value = at.node.value if isinstance(at.node, Scalar) else ""
        if value is None or (value == 0 and not isinstance(value, bool)):
            return None
        try:
            return parse_timeout(_in_ms(value))
        except DurationProblem as problem:
            hint = f'write null, 0 to {bounds.TIMEOUT_MS}, "30s", "10m" or "2h"'
            at.error("invalid-timeout", f"{at.what} {problem}.", hint)
            return UNSET


def _in_ms(value: Any) -> Any:
    """Hours, which tasks know beyond the units of workflows, as milliseconds; other values as they are."""
    hours = _HOURS.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return value if hours is None else int(hours[1]) * 3_600_000


def _tools(at: Cursor) -> Any:
    """One name, or a list of them."""
    if isinstance(at.node, Scalar):
        return at.text(empty=False)
    texts = [item.text(empty=False) for item in at.items()]
    return [text.strip() for text in texts if text is not None]

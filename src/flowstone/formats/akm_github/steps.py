"""The `steps:` of the one job of a GitHub-shaped workflow → steps of the document."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from flowstone.diagnostics import Report
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.credentials import scan
from flowstone.formats.akm_common.fields import span_of
from flowstone.formats.akm_common.links import Links
from flowstone.formats.akm_common.targets import Family, Refusal, classify_uses
from flowstone.formats.akm_github import grammar
from flowstone.formats.akm_github.bindings import read_bindings, read_command_arguments, read_scalars
from flowstone.formats.akm_prompts.template import TOKEN
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Scalar, Sequence
from flowstone.values import canonical_json, clip

_STEP_ID = re.compile(bounds.GITHUB_ID)
_ENV_NAME = re.compile(bounds.ENV_NAME)


class ReadStep(msgspec.Struct, frozen=True):
    """A step's id, and the step where it could be read whole."""

    id: str | None
    step: ir.Step | None


def read_steps(at: Cursor, path: str, links: Links, report: Report) -> tuple[ReadStep, ...]:
    """All steps; `path` is the file's, for spans; references in `with:` go to `links`."""
    entries = at.items()
    if isinstance(at.node, Sequence) and not entries:
        at.error("sequence-required", f"{at.what} must hold at least one step")
    if len(entries) > bounds.STEPS:
        at.error("step-count-limit", f"{at.what} holds {len(entries)} steps; at most {bounds.STEPS} are allowed")
    first: dict[str, str] = {}
    return tuple(_StepReader(index, entry, links, report, first).read(path) for index, entry in enumerate(entries))


class _StepReader:
    def __init__(self, index: int, at: Cursor, links: Links, report: Report, first: dict[str, str]) -> None:
        self._index = index
        self._at = at
        self._links = links
        self._report = report
        self._first = first
        self._found = at.mapping(grammar.STEP_KEYS)

    def read(self, path: str) -> ReadStep:
        if not isinstance(self._at.node, Mapping):
            return ReadStep(None, None)
        step_id = self._read_id()
        fields: dict[str, Any] = {}
        if "name" in self._found:
            fields["name"] = self._found["name"].text(empty=False)
        if "env" in self._found:
            fields["env"] = _read_env(self._found["env"], self._report)
        if ("uses" in self._found) == ("run" in self._found):
            message = f'{self._at.what} must have exactly one of "uses" and "run"'
            self._at.error("step-target-xor", message)
        elif "run" in self._found:
            fields |= self._read_run(self._found["run"])
        else:
            fields |= self._read_uses(self._found["uses"], step_id)
        if step_id is None:
            return ReadStep(None, None)
        return ReadStep(step_id, ir.Step(id=step_id, source=span_of(path, self._at.node), **fields))

    def _read_id(self) -> str | None:
        at = self._found.get("id")
        if at is None:
            self._at.error("missing-key", f'{self._at.what} requires "id"')
            return None
        text = at.text()
        if text is None:
            return None
        if not _STEP_ID.fullmatch(text):
            hint = 'use letters, digits, "_" and "-", no digit or dash first, at most 128 characters'
            at.error("invalid-step-id", f'{at.what}: "{clip(text, 140)}" is no step id', hint)
            return None
        if self._first.setdefault(text, self._at.path) != self._at.path:
            message = f'{at.what}: the id "{text}" is used by {self._first[text]} already'
            at.error("duplicate-step-id", message)
        return text

    def _read_run(self, at: Cursor) -> dict[str, Any]:
        if "with" in self._found:
            self._found["with"].error(
                "run-field-conflict", f'{self._found["with"].what} stands beside "run", which takes no inputs'
            )
        fields: dict[str, Any] = {"shell": "sh"}
        if "shell" in self._found:
            fields["shell"] = _read_shell(self._found["shell"])
        if "working-directory" in self._found:
            fields["working_directory"] = _read_folder(self._found["working-directory"])
        text = at.text(empty=False)
        if text is None:
            return fields
        if "\0" in text:
            at.error("invalid-exec-argv", f"{at.what} holds a NUL character")
        elif (problem := rules.run_problem(text)) is not None:
            hint = "put the command into a script under scripts/ and write uses: scripts/<name>"
            at.error("unsafe-run-syntax", f"{at.what} {problem}", hint)
        else:
            fields["run"] = rules.normal_run(text)
        return fields

    def _read_uses(self, at: Cursor, step_id: str | None) -> dict[str, Any]:
        for key in grammar.RUN_ONLY_KEYS:
            if key in self._found:
                message = f'{self._found[key].what} stands beside "uses"; it goes with "run" only'
                self._found[key].error("uses-field-conflict", message)
        ref = at.text(empty=False)
        if ref is None:
            return {}
        family = classify_uses(ref)
        if isinstance(family, Refusal):
            at.error(family.code, f"{at.what}: {family.message}", family.hint)
            return {}
        given = self._found.get("with")
        if family is Family.BUILTIN:
            return {"uses": ref, **_read_builtin(at, given)}
        if given is None:
            return {"uses": ref}
        if family in (Family.TASK, Family.WORKFLOW):
            label = f'Step "{step_id or self._index + 1}" ({ref})'
            return {"uses": ref, "with_": read_bindings(given, label, self._index, self._links)}
        message = f"{given.what}: {ref} declares no inputs, so it takes no with, not even an empty one"
        given.error("with-unsupported", message, "leave with out")
        return {"uses": ref, "with_": read_scalars(given)}


def _read_builtin(uses: Cursor, given: Cursor | None) -> dict[str, Any]:
    if given is None:
        message = f'{uses.what} requires "with": the command\'s ref or content'
        uses.error("builtin-command-inputs", message, "write with: { ref: commands/<name> }")
        return {}
    arguments = read_command_arguments(given)
    if arguments is None:
        return {}
    mode: Literal["literal", "stored-ref", "portable-template"] = "literal"
    if "ref" in arguments:
        mode = "stored-ref"
    elif "arguments" in arguments or TOKEN in arguments["content"]:
        mode = "portable-template"
    return {"with_": arguments, "command_mode": mode}


def _read_shell(at: Cursor) -> str | None:
    text = at.text()
    if text is not None and text not in grammar.SHELLS:
        message = f'{at.what}: "{clip(text, 80)}" is no supported shell'
        at.error("unsupported-shell", message, "use one of " + ", ".join(grammar.SHELLS))
        return None
    return text


def _read_folder(at: Cursor) -> str | None:
    text = at.text()
    problem = None if text is None else rules.folder_problem(text)
    if text is None:
        return None
    if problem is None:
        return rules.normal_folder(text)
    controls = "control character" in problem
    code = "working-directory-control-character" if controls else "working-directory-escape"
    at.error(code, f"{at.what} {problem}", "write a folder below the one that the run is started in")
    return None


def _read_env(at: Cursor, report: Report) -> dict[str, str]:
    values = {}
    for name, entry in at.mapping().items():
        if not _ENV_NAME.fullmatch(name):
            message = f'{at.what}: "{clip(name, 80)}" is no variable name'
            report.error("invalid-mapping-key", message, entry.key_place)
        elif not isinstance(entry.node, Scalar) or entry.node.value is None:
            entry.error("scalar-required", f"{entry.what} must be a string, number or boolean")
        else:
            values[name] = _env_text(entry.node)
    for finding in scan(values):
        message = f"{at.what}.{finding.path} {finding.why}; it would be stored in the plan as it stands"
        at.warn("secret-in-env", message, "bind secrets by an env asset instead")
    return values


def _env_text(scalar: Scalar) -> str:
    """The child's text: numbers as authored, booleans as JSON spells them."""
    if isinstance(scalar.value, bool):
        return canonical_json(scalar.value)
    return scalar.text

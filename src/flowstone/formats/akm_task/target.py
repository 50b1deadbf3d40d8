"""`uses` or `run` of a task, with what stands beside it → its target."""

from __future__ import annotations

import re
from typing import Any

from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.credentials import scan
from flowstone.formats.akm_common.targets import Family, Refusal, classify_uses
from flowstone.formats.akm_github.bindings import read_command_arguments
from flowstone.formats.akm_task import grammar
from flowstone.formats.akm_task.document import Target
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Scalar
from flowstone.values import canonical_json, clip

_LOCATOR = re.compile(r"[\w.-]+/[\w.-]+(?:/[\w./-]+)?@[\w./-]+")
_FAMILIES = "akm/command, commands/…, scripts/… and workflows/…"


def read_target(at: Cursor, found: dict[str, Cursor]) -> Target:
    """The target; an empty one where the file names none, which is reported."""
    fields: dict[str, Any] = {}
    if ("uses" in found) == ("run" in found):
        at.error("task-target-xor", 'A task must have exactly one of "uses" and "run".')
    elif "run" in found:
        fields = _run(found)
    else:
        fields = _uses(found)
    if "env" in found:
        fields["env"] = _env(found["env"], fields.get("family"))
    return Target(**fields)


def _run(found: dict[str, Cursor]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "with" in found:
        found["with"].error("run-field-conflict", '"with" stands beside "run"; it goes with akm/command only.')
    text = found["run"].text(empty=False)
    if text is not None and "\0" in text:
        found["run"].error("invalid-run", '"run" holds a NUL character.')
    elif text is not None:
        fields["run"] = text
    if "shell" in found:
        shell = found["shell"].one_of(*grammar.SHELLS)
        fields |= {"shell": shell} if shell is not None else {}
    if "working-directory" in found:
        folder = found["working-directory"].text()
        problem = None if folder is None else rules.folder_problem(folder)
        if problem is not None:
            hint = "write a folder below the one that the task is started in"
            found["working-directory"].error("working-directory-escape", f'"working-directory" {problem}.', hint)
        elif folder is not None:
            fields["working_directory"] = rules.normal_folder(folder)
    return fields


def _uses(found: dict[str, Cursor]) -> dict[str, Any]:
    at = found["uses"]
    for key in grammar.RUN_ONLY:
        if key in found:
            found[key].error("uses-field-conflict", f'"{key}" stands beside "uses"; it goes with "run" only.')
    ref = at.text(empty=False)
    if ref is None:
        return {}
    family = classify_uses(ref)
    if isinstance(family, Refusal):
        locator = _LOCATOR.fullmatch(ref) is not None
        message = (
            f'"{clip(ref, 120)}" is the locator of a remote action, which akm never fetches'
            if locator
            else family.message
        )
        at.error(family.code, f'"uses": {message}.', family.hint)
        return {}
    if family is Family.TASK:
        message = f'"uses": "{clip(ref, 120)}" is a task; a task does not run another one.'
        at.error("unsupported-uses-target", message, f"name what that task runs: {_FAMILIES}")
        return {}
    given = found.get("with")
    if family is not Family.BUILTIN:
        if given is not None:
            hint = "declare inputs, whose values a caller gives"
            given.error("with-unsupported", f'"with" goes with akm/command only; {ref} takes none.', hint)
        return {"uses": ref, "family": family}
    if given is None:
        at.error("builtin-command-inputs", '"uses" akm/command requires "with".', "write with: { content: text }")
        return {"uses": ref, "family": family}
    return {"uses": ref, "family": family, "arguments": read_command_arguments(given)}


def _env(at: Cursor, family: Family | None) -> dict[str, str]:
    if family is Family.WORKFLOW:
        at.error("env-unsupported", '"env" is refused for a workflow: its steps say what they need themselves.')
        return {}
    values: dict[str, str] = {}
    for name, entry in at.mapping().items():
        problem = rules.env_name_problem(name)
        if problem is not None:
            entry.error("invalid-env", f"{at.what} {problem}.")
        elif not isinstance(entry.node, Scalar) or entry.node.value is None:
            entry.error("scalar-required", f"{entry.what} must be a string, number or boolean.")
        else:
            values[name] = canonical_json(entry.node.value) if isinstance(entry.node.value, bool) else entry.node.text
    found = at.mapping()
    for finding in scan(values):
        message = f"{at.what}.{finding.path} {finding.why}; a task file is no place for it."
        found.get(finding.path, at).error("secret-in-env", message, "keep it in an env asset, read by a workflow step")
    return values

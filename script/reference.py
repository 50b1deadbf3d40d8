"""Writes the generated parts of docs/reference anew from the sources; `--check` only says what is stale.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. A test runs the check.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import click

from flowstone import errors
from flowstone.cli import exit_codes
from flowstone.cli.akm.main import command as akm
from flowstone.cli.flowstone.main import command as flowstone
from flowstone.cli.lazy import LazyGroup
from flowstone.cli.orun.main import command as orun
from flowstone.config.rules import RULES
from flowstone.formats.akm_github import grammar as github
from flowstone.formats.akm_markdown import grammar as markdown
from flowstone.formats.akm_task import grammar as task_grammar
from flowstone.formats.orun import grammar as orun_grammar
from flowstone.formats.orun_job import grammar as job_grammar
from flowstone.plan import bounds
from flowstone.run import events
from flowstone.run.outcome import RETRYABLE, Reason

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
SOURCES = ROOT / "src" / "flowstone"
_PART = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.S)
_KEBAB = re.compile(r"[a-z]+(-[a-z]+)+")


def main() -> int:
    """Returns 1 when `--check` is given and a page is stale."""
    check = "--check" in sys.argv[1:]
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        old = page.read_text("utf-8")
        new = _PART.sub(lambda part: f"{part[1]}\n{PARTS[part['name']]()}\n\n{part[3]}", old)
        if new != old:
            stale.append(page.relative_to(ROOT))
            if not check:
                page.write_text(new, "utf-8")
    for path in stale:
        print(f"{path} {'is stale: run .venv/bin/python script/reference.py' if check else 'written'}")
    return 1 if check and stale else 0


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def help_of(command: click.Command, name: str) -> str:
    """The help of a command and of all below it, in the order of its list."""
    return "\n\n".join(_helps(command, name, None))


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=80, max_content_width=80)
    yield f"### {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, LazyGroup):
        for verb in command.list_commands(context):
            below = command.get_command(context, verb)
            if below is not None and verb not in ("akm", "orun"):
                yield from _helps(below, verb, context)


def bounds_table() -> str:
    values = {name: value for name, value in vars(bounds).items() if name.isupper()}
    rows = [(f"`{name}`", BOUNDS[name], _number(value)) for name, value in values.items()]
    return table(("constant", "what it bounds", "value"), rows)


def _number(value: int | str) -> str:
    return f"`{value}`" if isinstance(value, str) else f"{value:,}"


def reasons_table() -> str:
    rows = [(f"`{reason.value}`", "yes" if reason in RETRYABLE else "no", REASONS[reason]) for reason in Reason]
    return table(("reason", "may stand in `retry.on`", "meaning"), rows)


def events_table() -> str:
    rows = []
    for kind in get_args(events.Event):
        fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__)
        own = inspect.cleandoc(kind.__dict__.get("__doc__") or "").split("\n\n")[0].replace("\n", " ")
        rows.append((f"`{kind.__struct_config__.tag}`", fields, own or EVENTS[kind.__name__]))
    return table(("event", "fields", "meaning"), rows)


def exit_table() -> str:
    used = {code: name for name, code in vars(exit_codes).items() if name.isupper() and isinstance(code, int)}
    return table(("code", "when"), [(str(code), EXITS[used[code]]) for code in sorted(used)])


def errors_table() -> str:
    codes: dict[str, int] = {}
    for kind in _kinds(errors.FlowstoneError):
        codes.setdefault(kind.code, _exit_of(kind, kind.code))
    for code, kind in _raised():
        codes.setdefault(code, _exit_of(kind, code))
    for code, number in exit_codes.BY_CODE.items():
        codes.setdefault(code, number)
    unused = codes.keys() - ERRORS.keys()
    if unused:
        raise SystemExit(f"script/reference.py: no meaning for {sorted(unused)}")
    return table(("code", "exit", "meaning"), [(f"`{c}`", str(codes[c]), ERRORS[c]) for c in sorted(codes)])


def _exit_of(kind: Any, code: str) -> int:
    error = kind.__new__(kind)
    error.code = code
    return exit_codes.exit_code(error)


def _kinds(kind: type[errors.FlowstoneError]) -> Iterator[Any]:
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield below
        yield from _kinds(below)


def _raised() -> Iterator[tuple[str, Any]]:
    """Codes that are given where an error is raised, with the error's type."""
    for call, name, _ in _calls():
        kind = getattr(errors, name, None)
        for keyword in call.keywords:
            if keyword.arg == "code" and isinstance(keyword.value, ast.Constant) and isinstance(kind, type):
                yield str(keyword.value.value), kind


def diagnostics_table(*folders: str) -> Callable[[], str]:
    def render() -> str:
        found: dict[str, set[str]] = {}
        for code, path, message in _diagnostics():
            if path.startswith(folders):
                found.setdefault(code, set()).add(message)
        return table(("code", "a message"), [(f"`{c}`", _sample(found[c])) for c in sorted(found)])

    return render


def _sample(messages: set[str]) -> str:
    return max(messages, key=lambda text: (len(text) - 4 * text.count("…"), text)) or "–"


def _diagnostics() -> Iterator[tuple[str, str, str]]:
    """(code, file, message with … for what varies) of every diagnostic that the sources can give."""
    for call, name, path in _calls():
        if name in ("error", "warn", "problem", "_error", "_mistyped", "Refusal", "Diagnostic"):
            for place, arg in enumerate(call.args[:2]):
                if (code := _code(arg)) is not None:
                    rest = call.args[place + 1 : place + 2]
                    yield code, path, _text(rest[0], path) if rest and name != "_mistyped" else ""
    for node, path in _nodes():
        yield from ((code, path, "") for code in _codes_by_name(node))


def _codes_by_name(node: ast.AST) -> Iterator[str]:
    """Codes that reach a diagnostic through a variable or a parameter named `code`."""
    if isinstance(node, ast.FunctionDef):
        named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        for argument, default in zip(named, node.args.defaults, strict=True):
            if argument.arg == "code" and (code := _code(default)) is not None:
                yield code
    if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["code"]:
        yield from (code for inner in ast.walk(node.value) if (code := _code(inner)) is not None)


def _code(node: ast.AST) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and _KEBAB.fullmatch(value) else None


def _text(node: ast.expr, path: str) -> str:
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in values)  # type: ignore[misc]  # text parts of an f-string
        case ast.Name(id=name):
            earlier = [other for other in _assignments().get((path, name), ()) if other.lineno < node.lineno]
            return _text(earlier[-1], path) if earlier and not isinstance(earlier[-1], ast.Name) else ""
        case _:
            return ""


@functools.cache
def _assignments() -> dict[tuple[str, str], list[ast.expr]]:
    """What each file assigns to each name, in the order of its lines."""
    found: dict[tuple[str, str], list[ast.expr]] = {}
    for node, path in _nodes():
        if isinstance(node, ast.Assign):
            found.setdefault((path, getattr(node.targets[0], "id", "")), []).append(node.value)
    return {key: sorted(values, key=lambda value: value.lineno) for key, values in found.items()}


def _calls() -> Iterator[tuple[ast.Call, str, str]]:
    for node, path in _nodes():
        if isinstance(node, ast.Call):
            yield node, getattr(node.func, "attr", getattr(node.func, "id", "")), path


@functools.cache
def _nodes() -> list[tuple[ast.AST, str]]:
    return [
        (node, str(path.relative_to(SOURCES)))
        for path in sorted(SOURCES.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]


def config_table() -> str:
    rows = []
    for key, rule in RULES.items():
        what = rule.check(_Nothing()) or ""
        rows.append((f"`{key.replace('*', '<name>')}`", rule.kind.value, what))
    return table(("key", "read by `set` as", "its value"), rows)


class _Nothing:
    """A value that no rule takes."""

    def strip(self) -> str:
        return ""


def keys_table(grammar: Any, names: dict[str, str]) -> Callable[[], str]:
    def render() -> str:
        rows = [(where, ", ".join(f"`{key}`" for key in getattr(grammar, name))) for name, where in names.items()]
        return table(("where", "keys"), rows)

    return render


BOUNDS = {
    "SOURCE_BYTES": "bytes of a workflow file",
    "PLAN_BYTES": "bytes of a frozen plan",
    "STEPS": "steps of an akm workflow",
    "PARAMS": "declared params",
    "INPUTS": "`inputs` of a step",
    "OUTPUTS": "declared workflow outputs",
    "ROUTE_BRANCHES": "branches of a route",
    "SCHEDULES": "`schedule` entries of a YAML workflow",
    "ENGINES": "engines in a plan",
    "INSTRUCTION_BYTES": "bytes of a step's instructions, and of its rubric",
    "SCHEMA_BYTES": "bytes of one JSON Schema",
    "EXTRA_PARAMS_BYTES": "bytes of an engine's extra parameters",
    "JSON_DEPTH": "nesting of JSON values",
    "CHILD_LEVELS": "levels of akm workflows below the one that is run",
    "CHILD_BYTES": "bytes of all plans that an akm run embeds",
    "SCHEMA_CHECKS": "checks in one validation by a JSON Schema",
    "MAX_LOOPS": "`gate.max_loops`",
    "CONCURRENCY": "`map.concurrency` and every configured width",
    "RETRIES": "`retry.max`",
    "MORE_ATTEMPTS": "`maxRetries` of an orun step, and the allowance of any step in a frozen plan",
    "TIMEOUT_MS": "a timeout, in milliseconds",
    "EXEC_TIMEOUT_MS": "default timeout of a command, in milliseconds",
    "UNITS": "items of a map, units of a run, `budget.max_units`",
    "ENGINE_NAME_CHARS": "characters of an engine's name",
    "ENGINE_NAME": "an engine's name",
    "STEP_ID": "a step's id in Markdown",
    "GITHUB_ID": "a step's or job's id in akm YAML",
    "PARAM_NAME": "a param's or output's name",
    "ENV_NAME": "a variable's name",
    "ARGV_ENTRIES": "words of a command",
    "ARGV_ENTRY_BYTES": "bytes of one word of a command",
    "CWD_CHARS": "characters of `cwd`",
    "PASS_ENV": "names in `pass_env`",
    "DIAGNOSTIC_CHARS": "characters that are kept of a unit's diagnostic",
    "STDERR_TAIL_CHARS": "characters of stderr inside a diagnostic",
    "EVIDENCE_BYTES": "bytes of a step's evidence",
    "EVIDENCE_PREVIEW_CHARS": "characters of the preview that replaces larger evidence",
    "UNIT_TEXT_CHARS": "characters of a unit's text inside evidence",
    "JUDGED_CHARS": "characters of an artifact that a judge sees",
    "EXCHANGE_CHARS": "characters kept of a question to a model, and of its answer",
    "BUDGET_ALARM_PERCENT": "how much of a budget is spent when a run warns, in percent",
    "YAML_NODES": "nodes of an akm YAML document",
    "YAML_DEPTH": "nesting of an akm YAML document",
    "BLOB_BYTES": "bytes of an artifact that is kept inline; larger ones go to the blob store",
}
REASONS = {
    Reason.TIMEOUT: "the time limit passed; the command's process group was ended",
    Reason.SPAWN_FAILED: "the command could not be started: no such program, or no such folder",
    Reason.NON_ZERO_EXIT: "the command ended with a code other than 0, or by a signal",
    Reason.PARSE_ERROR: "a unit with a schema did not print exactly one JSON value",
    Reason.COOLDOWN: "an engine asked to be left alone for a while",
    Reason.LLM_RATE_LIMIT: "a model's server refused for the moment (HTTP 429)",
    Reason.LLM_CONTENT_FILTER: "a model's content filter refused",
    Reason.LLM_INVALID_JSON: "a model's server answered with something that is no usable JSON",
    Reason.CONTENT_POLICY_REJECT: "an agent refused by its policy",
    Reason.UNSUPPORTED_TYPE: "an agent cannot do what was asked",
    Reason.NO_CHANGE: "an agent changed nothing where a change was asked for",
    Reason.ABORTED: "ended on request: a signal, `--timeout`, a budget",
    Reason.VALIDATION_ERROR: "the value does not fit the unit's or the step's schema",
    Reason.DISPATCH_ERROR: "the unit could not be dispatched, for example because an env asset cannot be read",
    Reason.ENV_UNSUPPORTED: "the unit's kind takes no environment",
    Reason.ISOLATION_UNSUPPORTED: "the unit's kind cannot be isolated",
    Reason.BUDGET_EXCEEDED: "the run's budget is spent",
    Reason.UNIT_CAP_EXCEEDED: "the run has dispatched all units that any run may",
    Reason.EXPRESSION_ERROR: "a reference, condition or template could not be evaluated",
    Reason.JOURNAL_WRITE_FAILED: "the outcome could not be stored",
    Reason.WORKTREE_FAILED: "no worktree could be made for the unit",
    Reason.REPORTED_FAILURE: "the unit itself reported that it failed",
    Reason.EXEC_CAPTURE_INCOMPLETE: "stdout was still held open by another process after the command's end",
    Reason.EXEC_OUTPUT_LIMIT: "more than 8 MiB of stdout where a JSON value was promised",
    Reason.EXEC_CONTEXT_TOO_LARGE: "the context variables are larger than the system allows",
    Reason.EXEC_CWD_ESCAPE: "`cwd` leads out of the folder that the unit may work in",
    Reason.OUTPUT_ERROR: "an `outputs` expression failed or gave what JSON cannot hold",
    Reason.HTTP_ERROR: "an HTTP request could not be made",
    Reason.SCRIPT_ERROR: "a script failed",
    Reason.POLL_EXPIRED: "`poll.until` was not satisfied in time",
    Reason.ROUTE_ERROR: "no branch matches the value and there is no default",
    Reason.VOTE_TIED: "no answer has more votes than every other",
    Reason.CHILD_FAILED: "the nested workflow failed",
    Reason.CHILD_BLOCKED: "the nested workflow is held",
    Reason.CHILD_PUBLISH_FAILED: "the nested workflow could not be started",
    Reason.CHILD_BUSY: "another process drives the nested workflow",
}
EVENTS = {
    "AttemptEnded": "An attempt ended; `outcome` holds its value or the reason of its failure.",
    "RunClosed": "The run ended.",
    "RunAbandoned": "A person gave the run up.",
}
EXITS = {
    "OK": "the verb did what was asked; for a run: it succeeded",
    "FAILED": "a run failed or did not come to its end, a lint found errors, or something was not found",
    "USAGE": "wrong flags or values, a source with mistakes, a verb that the run's state does not allow",
    "UNHEALTHY": "`akm task doctor` found something that is not as it should be",
    "INTERNAL": "an unexpected error, or a store that cannot be used",
    "OUTPUT": "stdout takes nothing (a full disk); all else was done and runs are kept (akm: 70, orun: 1)",
    "BUSY": "another process drives the run or holds the database; try again later",
    "CONFIG": "the configuration is wrong or lacks something",
    "HANGUP": "ended by SIGHUP",
    "INTERRUPTED": "ended by Ctrl-C (SIGINT)",
    "TERMINATED": "ended by SIGTERM",
}
ERRORS = {
    "ASSET_NOT_FOUND": "no such workflow, asset or file",
    "COMPOSITION_INVALID": "a workflow cannot be composed in this way",
    "CONFIG_WRITE_FAILED": "the configuration file cannot be written",
    "DISPATCH_SETUP_FAILED": "no unit can be dispatched at all",
    "DANGEROUS_ENV_KEY": "an env asset of another bundle sets a variable that makes programs run other code",
    "ENV_SOURCE_INVALID": "an env asset cannot be read",
    "FREEZE_FAILED": "a plan cannot be frozen: a target or an engine is missing",
    "INPUT_BINDING_INVALID": "inputs of a task or child workflow are unknown, missing or do not fit",
    "INTERNAL": "a bug of flowstone; the message names the file that keeps the traceback",
    "INVALID_CONFIG_FILE": "the configuration is wrong or lacks something",
    "STEP_NOT_READY": "a step was to run alone, and what it waits for has not succeeded",
    "STEP_NOT_DECIDABLE": "the step waits for no decision of a person",
    "INVALID_FLAG_VALUE": "a flag, param or input has a value that does not fit",
    "INVALID_JSON_ARGUMENT": "a value must be JSON and is not",
    "JOURNAL_CONFLICT": "another driver appended to the journal first",
    "JOURNAL_CORRUPT": "what is stored cannot be understood",
    "MAINTENANCE_BARRIER_BUSY": "the database is being maintained, or schedules are being brought in order",
    "MISSING_REQUIRED_ARGUMENT": "an argument or a subcommand is missing",
    "OUTPUT_FAILED": "the result cannot be written",
    "PATH_ESCAPE_VIOLATION": "a path leads out of its folder",
    "RESOURCE_ALREADY_EXISTS": "what should be created exists",
    "RUN_COMPLETED": "the run has completed",
    "RUN_LEASE_HELD": "another process drives the run; the message names it",
    "RUN_NOT_ACTIVE": "the run's state does not allow the verb; resume it first",
    "SCHEDULER_REFUSED": "the machine's scheduler did not take a row or cannot be read",
    "SCHEDULER_UNAVAILABLE": "the machine has no scheduler that can be used; the message says what to install",
    "STATE_DB_CONTENDED": "another process holds the database",
    "STATE_DB_UNAVAILABLE": "the database cannot be used: full disk, read-only folder",
    "TASK_SCHEMA_VERSION_UNSUPPORTED": "a task of a version that cannot be read or converted",
    "TASK_SOURCE_INVALID": "a task file has mistakes",
    "UNKNOWN_COMMAND": "there is no such verb; the hint names the one to use instead",
    "UNKNOWN_FLAG": "there is no such flag",
    "WORKFLOW_IR_VERSION_UNSUPPORTED": "a frozen plan of another version, or damaged",
    "WORKFLOW_NOT_FOUND": "no such run, or no run of that workflow",
    "WORKFLOW_OUTPUT_INVALID": "a declared workflow output cannot be resolved",
    "WORKFLOW_SOURCE_CHANGED": "a file changed that must not have",
    "WORKFLOW_SOURCE_INVALID": "a source has mistakes or cannot be read",
}
PARTS: dict[str, Callable[[], str]] = {
    "help-flowstone": lambda: help_of(flowstone, "flowstone"),
    "help-akm": lambda: help_of(akm, "akm"),
    "help-orun": lambda: help_of(orun, "orun"),
    "bounds": bounds_table,
    "reasons": reasons_table,
    "events": events_table,
    "exit-codes": exit_table,
    "error-codes": errors_table,
    "config-keys": config_table,
    "diagnostics-source": diagnostics_table("source/", "formats/registry"),
    "diagnostics-akm": diagnostics_table("formats/akm_common/"),
    "diagnostics-markdown": diagnostics_table("formats/akm_markdown/"),
    "diagnostics-github": diagnostics_table("formats/akm_github/"),
    "diagnostics-task": diagnostics_table("formats/akm_task/"),
    "diagnostics-orun": diagnostics_table("formats/orun/"),
    "diagnostics-orun-job": diagnostics_table("formats/orun_job/"),
    "keys-markdown": keys_table(
        markdown,
        {
            "ENVELOPE_KEYS": "front matter, about the asset",
            "ROOT_KEYS": "front matter, all",
            "DEFAULTS_KEYS": "`defaults`",
            "BUDGET_KEYS": "`budget`",
            "EXPORT_KEYS": "an entry of `outputs`",
            "STEP_KEYS": "a step",
            "UNIT_KEYS": "`unit`",
            "EXEC_KEYS": "`exec`",
            "RETRY_KEYS": "`retry`",
            "MAP_KEYS": "`map`",
            "ROUTE_KEYS": "`route`",
            "BRANCH_KEYS": "an entry of `when`",
            "GATE_KEYS": "`gate`",
        },
    ),
    "keys-github": keys_table(
        github,
        {
            "ROOT_KEYS": "root",
            "EVENT_KEYS": "`on`",
            "SCHEDULE_KEYS": "an entry of `schedule`",
            "JOB_KEYS": "the one job",
            "STEP_KEYS": "a step",
            "COMMAND_KEYS": "`with` of `akm/command`",
        },
    ),
    "keys-task": keys_table(
        task_grammar,
        {
            "KEYS": "root",
            "INPUT_KEYS": "an input",
            "SCHEDULE_KEYS": "an entry of `schedule`",
            "COMMAND_KEYS": "`with` of `akm/command`",
            "SHELLS": "`shell`",
        },
    ),
    "keys-orun-job": keys_table(
        job_grammar,
        {
            "ROOT_KEYS": "root",
            "STEP_KEYS": "a step",
            "APPROVAL_KEYS": "`approval`",
        },
    ),
    "keys-orun-blueprint": keys_table(
        job_grammar,
        {
            "BLUEPRINT_KEYS": "root",
            "HOOK_KEYS": "a hook",
        },
    ),
    "keys-orun": keys_table(
        orun_grammar,
        {
            "ROOT_KEYS": "root",
            "METADATA_KEYS": "`metadata`",
            "INPUT_KEYS": "an input",
            "CONNECTION_KEYS": "a connection",
            "STEP_KEYS": "a step",
            "RETRY_KEYS": "`retry`",
            "POLL_KEYS": "`poll`",
        },
    ),
}

if __name__ == "__main__":
    sys.exit(main())

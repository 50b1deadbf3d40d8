"""The `exec:` of a unit → a command: an argv, a contained folder and variable names."""

from __future__ import annotations

from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.document import Exec
from flowstone.formats.akm_markdown import grammar
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Scalar, Sequence


def read_exec(at: Cursor, step: str) -> Exec | None:
    """An exec block; None when it has no command that can be used."""
    inherits = isinstance(at.node, Mapping) and at.node.get("inherit_env") is not None
    found = at.mapping((*grammar.EXEC_KEYS, "inherit_env") if inherits else grammar.EXEC_KEYS)
    named = {key: value.named(f'{step} unit exec "{key}"') for key, value in found.items()}
    if inherits:
        _refuse_inherit(named.pop("inherit_env"))
    if not isinstance(at.node, Mapping):
        return None
    if "command" not in named:
        message = f'{step} unit "exec" requires a "command".'
        at.error("missing-key", message, 'write command: ["program", "argument"]')
    command = _read_command(named["command"]) if "command" in named else None
    cwd = _read_cwd(named["cwd"]) if "cwd" in named else None
    pass_env = _read_pass_env(named["pass_env"]) if "pass_env" in named else ()
    return None if command is None else Exec(command=command, cwd=cwd, pass_env=pass_env)


def _refuse_inherit(at: Cursor) -> None:
    message = f"{at.what} is not supported: a command never gets the whole environment (write pass_env)."
    at.error("inherit-env", message, 'name the variables in "pass_env", or bind values with the unit\'s "env"')


def _read_command(at: Cursor) -> tuple[str, ...] | None:
    if isinstance(at.node, Scalar) and isinstance(at.node.value, str):
        message = f"{at.what} must be a list of arguments; there is no shell-string spelling."
        at.error("command-string", message, 'write command: ["sh", "-c", "…"] where a shell is meant')
        return None
    entries = at.items()
    if not isinstance(at.node, Sequence):
        return None
    if not 1 <= len(entries) <= bounds.ARGV_ENTRIES:
        message = f"{at.what} must have 1 to {bounds.ARGV_ENTRIES} entries, got {len(entries)}."
        at.error("argv-size", message)
        return None
    arguments = [_read_argument(entry, f"{at.what} entry {n}") for n, entry in enumerate(entries, 1)]
    return None if None in arguments else tuple(text for text in arguments if text is not None)


def _read_argument(at: Cursor, what: str) -> str | None:
    text = at.named(what).text()
    if text is None:
        return None
    problem = rules.argument_problem(text)
    if problem:
        at.error("argv-entry", f"{what} {problem}.")
    return None if problem else text


def _read_cwd(at: Cursor) -> str | None:
    text = at.text(empty=False)
    if text is None:
        return None
    problem = rules.folder_problem(text.strip())
    if problem:
        hint = "write a folder below the one that the run is started in, such as packages/core"
        at.error("exec-cwd", f"{at.what} {problem}.", hint)
        return None
    return rules.normal_folder(text.strip())


def _read_pass_env(at: Cursor) -> tuple[str, ...]:
    entries = at.items()
    if isinstance(at.node, Sequence) and not 1 <= len(entries) <= bounds.PASS_ENV:
        message = f"{at.what} must have 1 to {bounds.PASS_ENV} names, got {len(entries)}."
        at.error("pass-env-size", message)
        return ()
    names: list[str] = []
    for entry in entries:
        name = entry.named(f"{at.what} entry").text()
        problem = None if name is None else rules.env_name_problem(name)
        if problem:
            entry.error("pass-env-name", f"{at.what} {problem}.")
        elif name in names:
            entry.error("pass-env-twice", f'{at.what} lists "{name}" twice.')
        elif name is not None:
            names.append(name)
    return tuple(names)

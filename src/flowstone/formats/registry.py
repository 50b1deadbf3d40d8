"""File name and text → the language's compiler: the one list of the languages.

A compiler turns a source into a plan or says what is wrong with it; whatever follows reads the
plan and knows no language.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import msgspec

from flowstone.diagnostics import WHOLE_FILE, Diagnostic
from flowstone.errors import SourceError
from flowstone.plan.bounds import SOURCE_BYTES
from flowstone.plan.model import Plan
from flowstone.ports.dialect import Dialect
from flowstone.source.file import SourceText

AKM_MARKDOWN, AKM_GITHUB, AKM_TASK = "akm-markdown", "akm-github", "akm-task"
ORUN, ORUN_JOB = "orun", "orun-job"
TASK_TARGETS = {"uses", "run", "workflow", "prompt", "command"}
"""One of these names what a task runs, in one version or another."""


class Compiled(msgspec.Struct, frozen=True):
    """`plan` is None when there are errors; `digest` is `sha256:` and the hex of the raw bytes."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]
    format: str
    digest: str = ""


Load = Callable[[str], SourceText]
"""Reads a file by its path, or what a remote reference names; SourceError."""


class Compiler(Protocol):
    """Compiles one language. `load` reads a further file that the source names, by its path."""

    def __call__(self, path: str, source: SourceText, load: Load) -> Compiled: ...


class UnknownFormat(SourceError):
    """No language has such files; the message says what they look like."""


def format_of(path: str, text: str) -> str:
    """Which language a file is written in, by its name and its content; else UnknownFormat."""
    name = path.rsplit("/", 1)[-1].lower()
    if name.endswith(".md"):
        return AKM_MARKDOWN
    if not name.endswith((".yml", ".yaml")):
        raise UnknownFormat(f"{path}: a workflow is a .md, .yml or .yaml file")
    keys = _root_keys(text)
    if _is_task(path, keys):
        return AKM_TASK
    if "apiVersion" in keys or not {"on", "jobs"} & keys.keys():
        return ORUN_JOB if keys.get("kind") == "Job" else ORUN
    if name.endswith(".yaml"):
        raise UnknownFormat(f"{path}: akm reads YAML workflows from .yml files only; rename it to end in .yml")
    return AKM_GITHUB


def compile_source(
    shown: str, path: str, source: SourceText, language: str | None = None, load: Load | None = None
) -> Compiled:
    """Compile a file of any language, or of `language` whatever it looks like.

    `shown` names it in diagnostics, `path` is where it lies; `load` reads the files that it nests,
    where some of them may be remote.
    """
    try:
        language = language or format_of(path, source.text)
    except UnknownFormat as error:
        found = Diagnostic("unknown-format", error.message.removeprefix(f"{path}: "), WHOLE_FILE, error.hint)
        return Compiled(None, (found,), AKM_GITHUB)
    placed = msgspec.structs.replace(source, path=path)
    return compiler_of(language)(shown, placed, load or _local)


def _local(path: str) -> SourceText:
    from flowstone.source.file import read_source
    from flowstone.source.remote import is_remote

    if is_remote(path):
        raise SourceError(f"{path}: is remote; it is fetched by a run and by lint, not here")
    return read_source(path, SOURCE_BYTES)


def compiler_of(language: str) -> Compiler:
    """The compiler of a language, imported when it is asked for."""
    compiler: Compiler = _imported(_COMPILERS[language])
    return compiler


def dialect_of(name: str) -> Dialect:
    """The dialect of a plan (`Plan.dialect`), imported when it is asked for."""
    dialect: Dialect = _imported(_DIALECTS[name])()
    return dialect


def _imported(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(import_module(f"flowstone.formats.{module}"), name)


def _is_task(path: str, keys: dict[str, str]) -> bool:
    """A task has a version and a target; below a folder `tasks`, whatever is no other language is meant as one."""
    if {"apiVersion", "jobs"} & keys.keys():
        return False
    below = path.lower().endswith(".yml") and "tasks" in path.replace("\\", "/").split("/")[:-1]
    return below or ("version" in keys and bool(keys.keys() & TASK_TARGETS))


def _root_keys(text: str) -> dict[str, str]:
    """The keys of a block mapping at the root, each with what follows on its line, without reading it as YAML."""
    keys = {}
    for line in text.split("\n"):
        key, colon, rest = line.partition(":")
        if colon and key and not key[0].isspace():
            keys[key.strip().strip("\"'")] = rest.partition(" #")[0].strip().strip("\"'")
    return keys


_COMPILERS = {
    AKM_MARKDOWN: ("akm_common.compile", "compile_markdown"),
    AKM_GITHUB: ("akm_common.compile", "compile_github"),
    AKM_TASK: ("akm_task.compile", "compile_task"),
    ORUN: ("orun.compile", "compile_orun"),
    ORUN_JOB: ("orun_job.compile", "compile_job"),
}
_DIALECTS = {
    "akm": ("akm_common.dialect", "AkmDialect"),
    "orun": ("orun.dialect", "OrunDialect"),
    "orun-job": ("orun_job.dialect", "JobDialect"),
}

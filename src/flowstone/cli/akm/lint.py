"""`akm lint`: every workflow of a bundle, checked; `--fix` mends what can be mended safely."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Format, Output, emit
from flowstone.errors import InputError, SourceError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.views.lint import Linted

TYPES = ("agents", "commands", "memories", "skills", "workflows", "lessons", "tasks", "knowledge", "facts")
PROMPTS = ("commands", "agents")
FRONT_MATTER = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*(\r\n|\r|\n)(.*?)^---[ \t]*(?:\r|\n|\Z)", re.S | re.M)
UPDATED = re.compile(rb"""^["']?updated["']?[ \t]*:""", re.M)
BLOCK = re.compile(rb"\A(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+)*[^\s#{]")
"""Front matter that is a block mapping: a line can be added to it."""


@click.command("lint", epilog="Example: akm lint --type workflows --fail-on-flagged --format text")
@click.option("--type", "kind", metavar="TYPE", help="Only assets of this type, such as workflows.")
@click.option("--dir", "folder", metavar="BUNDLE", help="The bundle to check; without it the default one.")
@click.option("--fix", is_flag=True, help="Add a missing `updated:`.")
@click.option("--fail-on-flagged", is_flag=True, help="Exit with 1 when anything is flagged.")
@output_options()
def command(kind: str | None, folder: str | None, fix: bool, fail_on_flagged: bool, output: Output) -> int:
    """Check the assets of a bundle; all mistakes of all files at once."""
    from flowstone.api import Flowstone
    from flowstone.views.lint import lint_view

    if kind is not None and kind not in TYPES:
        raise InputError(f'Unknown asset type "{kind}".', hint=f"Known types: {', '.join(TYPES)}.")
    with Flowstone() as flow:
        root = _root(flow, folder)
        files = workflow_files(root) if kind in (None, "workflows") else iter(())
        found = [linted(flow, root, path, fix) for path in files if _is_ours(flow, path)]
        if kind is None:
            found += env_files(flow, root)
    if kind in (None, "tasks"):
        found += linted_tasks(root)
    for family in PROMPTS if kind is None else (kind,):
        found += linted_prompts(root, family) if family in PROMPTS else []
    view = lint_view(found)
    emit(view, output, {Format.TEXT: lint_text})
    return exit_codes.FAILED if fail_on_flagged and view["flagged"] else exit_codes.OK


def workflow_files(root: str) -> Iterator[str]:
    """The workflow files of a bundle, by name; hidden folders are left out."""
    return _files(os.path.join(root, "workflows"), (".md", ".yml"))


def linted_tasks(root: str) -> list[Linted]:
    """What is wrong with the task files of a bundle."""
    from flowstone.api import Flowstone
    from flowstone.views.lint import TASK, Linted

    with Flowstone(language="akm-task") as flow:
        return [
            Linted(os.path.relpath(path, root).replace(os.sep, "/"), found, issue=TASK)
            for path in _files(os.path.join(root, "tasks"), (".yml",))
            for _, found in flow.lint([path])
        ]


def linted_prompts(root: str, family: str) -> list[Linted]:
    """What is wrong with the commands or the agents of a bundle."""
    from flowstone.api.prompts import diagnose
    from flowstone.views.lint import PROMPT, Linted

    return [
        Linted(os.path.relpath(path, root).replace(os.sep, "/"), diagnose(path, family), issue=PROMPT)
        for path in _files(os.path.join(root, family), (".md",))
    ]


def linted(flow: Flowstone, root: str, path: str, fix: bool) -> Linted:
    """What is wrong with one file; with `fix` a missing date is added first."""
    from flowstone.views.lint import Linted

    undated = path.endswith(".md") and _is_undated(path)
    dated = undated and fix and add_date(path)
    ((_, found),) = flow.lint([path])
    return Linted(os.path.relpath(path, root).replace(os.sep, "/"), found, undated, dated)


def env_files(flow: Flowstone, root: str) -> Iterator[Linted]:
    """The env assets of a bundle: only the names in them are looked at; sensitive ones are left out."""
    from flowstone.views.lint import Linted

    for entry, keys in flow.wiring.vault_at(root).suspects():
        file = os.path.relpath(entry.path, root).replace(os.sep, "/")
        yield Linted(file, dangerous=keys, unreadable=entry.problem)


def add_date(path: str) -> bool:
    """Put `updated: <today>` at the end of the front matter; all other bytes stay. False if it cannot be."""
    import datetime

    with open(path, "rb") as file:
        data = file.read()
    matter = FRONT_MATTER.match(data)
    if matter is None or not BLOCK.match(matter[2]):
        return False
    line = b"updated: " + datetime.date.today().isoformat().encode() + matter[1]
    _replace(path, data[: matter.end(2)] + line + data[matter.end(2) :])
    return True


def lint_text(envelope: dict[str, object]) -> str:
    """One line a finding, and a summary."""
    from flowstone.cli.render.terminal import one_line

    rows = []
    for key, mark in (("flagged", "✗"), ("warnings", "⚠"), ("fixed", "✓")):
        for row in envelope[key]:  # type: ignore[attr-defined]  # lists of findings, by lint_view
            place = f"{row['file']}:{row['line']}" if "line" in row else row["file"]
            rows.append(f"{mark} {one_line(place)}: {one_line(row['detail'])}")
    counts = envelope["summary"]
    assert isinstance(counts, dict)
    return "\n".join([*rows, ", ".join(f"{count} {name}" for name, count in counts.items())])


def _files(base: str, endings: tuple[str, ...]) -> Iterator[str]:
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(endings) and not name.startswith("."):
                yield os.path.join(folder, name)


def _root(flow: Flowstone, folder: str | None) -> str:
    if folder is None:
        return flow.wiring.settings.bundle.root
    root = os.path.join(flow.wiring.cwd, folder)
    if not os.path.isdir(root):
        raise InputError(f'Invalid value for --dir: "{folder}" is no folder.')
    return root


def _is_ours(flow: Flowstone, path: str) -> bool:
    """Whether a YAML file is an akm workflow: it has `on` or `jobs` at its root (akm facts 7.1)."""
    if not path.endswith(".yml"):
        return True
    try:
        return flow.compile(path).compiled.format not in ("orun", "orun-job", "akm-task")
    except SourceError:
        return True


def _is_undated(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            matter = FRONT_MATTER.match(file.read())
    except OSError:
        return False
    return matter is not None and UPDATED.search(matter[2]) is None


def _replace(path: str, data: bytes) -> None:
    import shutil

    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        shutil.copymode(path, temporary)
        os.replace(temporary, os.path.realpath(path))
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise InputError(f"{path} cannot be written: {error.strerror}") from None

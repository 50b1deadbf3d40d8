"""`flowstone schema LANGUAGE`: the published JSON Schema of a language."""

from __future__ import annotations

import os
from importlib.resources import files

import click

from flowstone.cli.render.terminal import say, say_document
from flowstone.errors import InputError


@click.command("schema", epilog="Example: flowstone schema orun-workflow > orun-workflow.json")
@click.argument("language", required=False)
def command(language: str | None) -> None:
    """Print the JSON Schema of LANGUAGE, for editors and other tools; without it the languages."""
    known = languages()
    if language is None:
        say("".join(f"{name}\n" for name in known))
        return
    name = language.removesuffix(".json")
    match = [item for item in known if item in (name, f"{name}-workflow")]
    if not match:
        raise InputError(f'There is no language "{language}".', hint=f"Known: {', '.join(known)}.")
    say_document((files("flowstone") / "schemas" / f"{match[0]}.json").read_text("utf-8"))


def languages() -> list[str]:
    """The names of the schemas in the package."""
    folder = files("flowstone") / "schemas"
    names = (os.path.splitext(item.name) for item in folder.iterdir()) if folder.is_dir() else ()
    return sorted(stem for stem, suffix in names if suffix == ".json")

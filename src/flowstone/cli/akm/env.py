"""`akm env list|create|path|run|export|remove`: env assets, whose values only `run` and `export` give away."""

from __future__ import annotations

import click

from flowstone.cli.akm.stored import AFTER_REF, command_of, listing, read_input, run_with
from flowstone.cli.common import output_options
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.render.formats import Format, Output, deliver, emit
from flowstone.cli.render.terminal import neutral, say_document

_HERE = "flowstone.cli.akm.env"
VERBS = {
    "create": Verb(f"{_HERE}:create", "Write a new env asset that only you may read."),
    "export": Verb(f"{_HERE}:export", "Print the variables as lines for a shell."),
    "list": Verb(f"{_HERE}:list_", "List env assets with the names in them, never a value."),
    "path": Verb(f"{_HERE}:path", "Print where an env asset lies."),
    "remove": Verb(f"{_HERE}:remove", "Remove an env asset."),
    "run": Verb(f"{_HERE}:run", "Run a command with the variables of an env asset."),
}
TEMPLATE = b"# NAME=value, a line each; ${secret:NAME} stands for a secret of this bundle.\n"

command = LazyGroup(
    "env",
    VERBS,
    help="Keep variables for commands in env assets (env/<name>.env of a bundle).",
    epilog="Example: akm env run env/deploy -- ./deploy.sh",
)


@click.command("list", epilog="Example: akm env list --format text")
@output_options()
def list_(output: Output) -> None:
    """List env assets with the names in them; values and sensitive assets are not shown."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        entries = flow.wiring.vault.entries("env")
    for entry in entries:
        if entry.problem is not None:
            output.warn(entry.problem)
    rows = [{"ref": entry.ref, "path": entry.path, "keys": list(entry.keys)} for entry in entries]
    emit({"ok": True, "envs": rows, "shape": "env-list"}, output, {Format.TEXT: listing("envs")})


@click.command("create", epilog="Examples: akm env create deploy · akm env create deploy --from .env")
@click.argument("name")
@click.option("--from", "origin", metavar="FILE", help="Take the text of FILE; - is stdin.")
@click.option("--force", is_flag=True, help="Replace an existing asset.")
@output_options()
def create(name: str, origin: str | None, force: bool, output: Output) -> None:
    """Write a new env asset NAME, readable by you alone."""
    from flowstone.api import Flowstone

    data = TEMPLATE if origin is None else read_input(origin)
    with Flowstone() as flow:
        vault = flow.wiring.vault
        entry = vault.write("env", name, data, replace=force)
        _warn(vault.dangerous_keys(entry.ref), entry.ref, output)
    emit({"ok": True, "ref": entry.ref, "path": entry.path, "keys": list(entry.keys)}, output)


@click.command("path", epilog='Example: $EDITOR "$(akm env path env/deploy)"')
@click.argument("ref")
@output_options(Format.TEXT)
def path(ref: str, output: Output) -> None:
    """Print the path of the env asset REF."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        where = flow.wiring.vault.path("env", ref)
    if output.format is Format.TEXT:
        deliver(where + "\n", output)
    else:
        emit({"ok": True, "path": where}, output)


@click.command("run", context_settings=AFTER_REF, epilog="Example: akm env run env/deploy -- ./deploy.sh --now")
@click.argument("ref")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…")
def run(ref: str, words: tuple[str, ...]) -> None:
    """Run a command with the variables of REF in place of this one; its exit code is that of `akm`."""
    argv = command_of(words, "akm env run REF -- COMMAND")
    run_with(_values(ref, Output()), argv)


@click.command("export", epilog='Example: eval "$(akm env export env/deploy)"')
@click.argument("ref")
def export(ref: str) -> None:
    """Print the variables of REF as `export NAME='value'` lines, quoted for a POSIX shell."""
    import shlex

    output = Output()
    for name, value in _values(ref, output).items():
        if name.replace("_", "a").isalnum():
            say_document(f"export {name}={shlex.quote(value)}\n")
        else:
            output.warn(f"{name} is left out: no shell variable can have that name.")


@click.command("remove", epilog="Example: akm env remove env/deploy")
@click.argument("ref")
@output_options()
def remove(ref: str, output: Output) -> None:
    """Remove the env asset REF."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        entry = flow.wiring.vault.remove("env", ref)
    emit({"ok": True, "ref": entry.ref, "path": entry.path}, output)


def _values(ref: str, output: Output) -> dict[str, str]:
    """The variables, secrets filled in; what your own asset may do and should not is told."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        vault = flow.wiring.vault
        full = vault.ref("env", ref)
        values = flow.wiring.catalog.env_values(full)
        _warn(vault.dangerous_keys(full), full, output)
    for name, value in values.items():
        if value is None:
            output.warn(f"{name} is left out: a secret that it names does not exist.")
    return {name: value for name, value in values.items() if value is not None}


def _warn(names: tuple[str, ...], ref: str, output: Output) -> None:
    if names:
        output.warn(neutral(f"{ref} sets {', '.join(names)}, which makes programs run other code."))

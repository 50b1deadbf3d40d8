"""`akm secret list|set|run|remove`: secrets, whose values no verb prints."""

from __future__ import annotations

import re

import click

from flowstone.cli.akm.stored import AFTER_REF, command_of, listing, read_input, read_secret, run_with
from flowstone.cli.common import output_options
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.render.formats import Format, Output, emit
from flowstone.errors import InputError

_HERE = "flowstone.cli.akm.secret"
VERBS = {
    "list": Verb(f"{_HERE}:list_", "List the names of secrets, never a value."),
    "remove": Verb(f"{_HERE}:remove", "Remove a secret."),
    "run": Verb(f"{_HERE}:run", "Run a command with a secret in one variable."),
    "set": Verb(f"{_HERE}:set_", "Keep a secret, read from stdin or a file."),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

command = LazyGroup(
    "secret",
    VERBS,
    help="Keep secrets (secrets/<name> of a bundle) that env assets name as ${secret:NAME}.",
    epilog="Example: akm secret set deploy-token < token.txt",
)


@click.command("list", epilog="Example: akm secret list --format text")
@output_options()
def list_(output: Output) -> None:
    """List the names of secrets; sensitive ones are not shown."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        rows = [{"ref": entry.ref, "path": entry.path} for entry in flow.wiring.vault.entries("secrets")]
    emit({"ok": True, "secrets": rows, "shape": "secret-list"}, output, {Format.TEXT: listing("secrets")})


@click.command("set", epilog="Examples: akm secret set token < token.txt · akm secret set key --from key.pem")
@click.argument("name")
@click.option("--from", "origin", metavar="FILE", help="Take FILE as it is, with its last line feed.")
@output_options()
def set_(name: str, origin: str | None, output: Output) -> None:
    """Keep the secret NAME, readable by you alone; a value that was kept before is replaced.

    The value is asked for, or read from stdin without its last line feed. It is never an argument:
    those stand in the shell's history and in the list of processes.
    """
    from flowstone.api import Flowstone

    data = read_secret() if origin is None else read_input(origin)
    if not data:
        raise InputError("The secret is empty.", hint="Give its value on stdin, or name a file with --from.")
    with Flowstone() as flow:
        entry = flow.wiring.vault.write("secrets", name, data, replace=True)
    emit({"ok": True, "ref": entry.ref, "path": entry.path}, output)


@click.command("run", context_settings=AFTER_REF, epilog="Example: akm secret run deploy-token TOKEN -- ./deploy.sh")
@click.argument("ref")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[VARIABLE] -- COMMAND…")
def run(ref: str, words: tuple[str, ...]) -> None:
    """Run a command with the secret REF in VARIABLE, by default its name in capitals (DEPLOY_TOKEN)."""
    from flowstone.api import Flowstone

    default = re.sub(r"[^A-Za-z0-9]", "_", ref.rpartition("/")[2]).upper()
    named = len(words) > 1 and words[1] == "--"
    variable = words[0] if named else default
    if not _VARIABLE.fullmatch(variable):
        raise InputError(
            f"{variable!r} is no name of a variable.", hint="Write akm secret run REF VARIABLE -- COMMAND."
        )
    argv = command_of(words[1:] if named else words, "akm secret run REF [VARIABLE] -- COMMAND")
    with Flowstone() as flow:
        value = flow.wiring.vault.secret(ref)
    run_with({variable: value}, argv)


@click.command("remove", epilog="Example: akm secret remove deploy-token")
@click.argument("ref")
@output_options()
def remove(ref: str, output: Output) -> None:
    """Remove the secret REF."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        entry = flow.wiring.vault.remove("secrets", ref)
    emit({"ok": True, "ref": entry.ref, "path": entry.path}, output)

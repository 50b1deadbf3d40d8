"""`akm config get|set|unset|list`: dotted keys of the configuration file, read and changed."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options, paths
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.render.formats import Format, Output, as_json, deliver, emit
from flowstone.errors import InputError
from flowstone.values import Json, is_text

_HERE = "flowstone.cli.akm.config"
VERBS = {
    "get": Verb(f"{_HERE}:get", "Print the value of a key."),
    "list": Verb(f"{_HERE}:list_", "Print all that is set."),
    "set": Verb(f"{_HERE}:set_", "Set a key; the value is read by the key's type."),
    "unset": Verb(f"{_HERE}:unset", "Remove a key."),
}

command = LazyGroup(
    "config",
    VERBS,
    help="Read and change the configuration file (config.json in AKM_CONFIG_DIR).",
    epilog="Example: akm config set workflow.defaultMapConcurrency 2",
)


@click.command("get", epilog="Example: akm config get workflow.judgeEngine")
@click.argument("key")
@output_options()
def get(key: str, output: Output) -> None:
    """Print the value of KEY, as JSON; a known key that is not set prints null."""
    from flowstone.config.file import get_value, read_config

    _show(masked(key.rpartition(".")[2], get_value(read_config(paths().config_file), key)), output)


@click.command("list")
@output_options()
def list_(output: Output) -> None:
    """Print all that is set."""
    from flowstone.config.file import read_config
    from flowstone.config.rules import problems

    document = read_config(paths().config_file)
    for problem in problems(document):
        output.warn(f"{problem.key} {problem.message}.")
    _show(masked("", document), output)


@click.command(
    "set",
    context_settings={"ignore_unknown_options": True},
    epilog="Examples: akm config set engines.local.endpoint http://localhost:8080/v1/chat/completions"
    " · akm config set workflow.hostConcurrency 8",
)
@click.argument("key")
@click.argument("value")
@output_options()
def set_(key: str, value: str, output: Output) -> None:
    """Set KEY to VALUE, which is read as the key's type asks: a number, true or false, JSON, or text."""
    from flowstone.config.file import set_value, update_config

    if not is_text([key, value]):
        raise InputError("The key and the value must be UTF-8 text.", hint="Write the value in UTF-8.")
    document = update_config(paths().config_file, lambda old: set_value(old, key, value))
    _show(masked("", document), output)


@click.command("unset")
@click.argument("key")
@output_options()
def unset(key: str, output: Output) -> None:
    """Remove KEY."""
    from flowstone.config.file import unset_value, update_config

    document = update_config(paths().config_file, lambda old: unset_value(old, key))
    _show(masked("", document), output)


def masked(name: str, value: Json) -> Json:
    """The value without credentials that somebody wrote into the file by hand."""
    if isinstance(value, dict):
        return {inner: masked(inner, item) for inner, item in value.items()}
    if name == "apiKey" and isinstance(value, str) and not value.startswith("$"):
        return "[REDACTED]"
    return value


def _show(value: Json, output: Output) -> None:
    if isinstance(value, dict):
        emit(value, output)
    elif output.format is Format.TEXT and isinstance(value, str):
        deliver(value + "\n", output)
    else:
        deliver(as_json(value) + "\n", output)

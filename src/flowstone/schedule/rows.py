"""What is enabled on this machine → the rows that its scheduler should hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.ports.activation import Row, Unschedulable
from flowstone.values import canonical_json


class Timed(msgspec.Struct, frozen=True):
    """A time table of a source, and the inputs that its runs are given."""

    cron: str
    inputs: dict[str, Any] = {}


class Scheduled(msgspec.Struct, frozen=True):
    """A task or workflow with its time tables. `command` are the words behind the program's name."""

    ref: str
    command: tuple[str, ...]
    cwd: str
    tables: tuple[Timed, ...]


class Binding(msgspec.Struct, frozen=True):
    """What a row is bound to: the words that start the program, and the variables that it needs."""

    program: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()


def rows_of(scheduled: Scheduled, binding: Binding) -> list[Row]:
    """A row for each time table, numbered in authored order. Unschedulable for inputs no flag can spell."""
    return [
        Row(
            key=f"{scheduled.ref}#{number}",
            cron=table.cron,
            argv=(*binding.program, *scheduled.command, *input_flags(table.inputs)),
            cwd=scheduled.cwd,
            env=binding.env,
        )
        for number, table in enumerate(scheduled.tables)
    ]


def input_flags(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags that give inputs on a command line, by name: `--name value`, `--name=value` before a dash."""
    words: list[str] = []
    for name in sorted(inputs):
        value = inputs[name]
        text = value if isinstance(value, str) else canonical_json(value)
        if "\0" in text:
            raise Unschedulable(f'its input "{name}" holds a NUL character')
        words += [f"--{name}={text}"] if text.startswith("-") or not text else [f"--{name}", text]
    return tuple(words)

"""What a harness is: how one agent program is called, and how what it prints is read.

A harness is one file in `harnesses/` that defines `HARNESS`, and one line in `registry`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a program is asked for. `args` are the engine's own and come first.

    `structured` asks for the program's JSON output form; `schema_file` holds the schema of the
    answer for a program that takes one; `system` is the system text of a judge or a persona. `tools` may
    be used without asking.
    """

    prompt: str
    system: str | None = None
    model: str | None = None
    agent: str | None = None
    args: tuple[str, ...] = ()
    structured: bool = False
    schema_file: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """The prompt behind the system text, for a program that takes no system text of its own."""
        return self.prompt if self.system is None else f"{self.system}\n\n{self.prompt}"

    @property
    def system_option(self) -> tuple[str, ...]:
        return () if self.system is None else ("--system-prompt", self.system)

    @property
    def model_option(self) -> tuple[str, ...]:
        return () if self.model is None else ("--model", self.model)

    @property
    def agent_option(self) -> tuple[str, ...]:
        return () if self.agent is None else ("--agent", self.agent)


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a program's output says. `failure` is what it reports as its failure, in its own words.

    `tokens_in` and `tokens_out` are the parts of `tokens`, both or none of them.
    """

    text: str = ""
    tokens: int | None = None
    session: str | None = None
    failure: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class NoAnswer(ValueError):
    """The output is not of the form in which the program answers; the message says why."""


class Harness(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent program. `program` is its name where the engine names no `bin`.

    `passed` are the variables that it gets beside the common ones, `plain` those of them whose
    values are no secrets. `variables` gives further ones from a task. `takes_schema` has the schema
    written to a file, `persona_in_prompt` a persona in front of the prompt. `read` raises NoAnswer.
    """

    program: str
    arguments: Callable[[Task], tuple[str, ...]]
    read: Callable[[str], Said]
    passed: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    variables: Callable[[Task], tuple[tuple[str, str], ...]] = lambda task: ()
    takes_schema: bool = False
    persona_in_prompt: bool = False

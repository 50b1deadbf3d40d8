"""A workflow file as the verbs of orun read it: compiled, or refused with all that is wrong."""

from __future__ import annotations

from typing import Any

import msgspec


class Checked(msgspec.Struct, frozen=True):
    """`digest` is `sha256:` and the hex of the raw bytes."""

    plan: Any
    digest: str


LANGUAGE = "orun"


def checked(file: str) -> Checked:
    """Compile a file; CompileError with every mistake, SourceError when it cannot be read."""
    from flowstone.api import Flowstone

    with Flowstone(language=LANGUAGE) as flow:
        workflow = flow.sound(file)
        return Checked(workflow.compiled.plan, workflow.compiled.digest)

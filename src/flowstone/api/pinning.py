"""The files that a plan pins by path and digest → nothing, or one error that names each that is another one now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flowstone.errors import DigestMismatch, SourceError
from flowstone.source.remote import is_remote

if TYPE_CHECKING:
    from flowstone.plan.model import Plan, SourceFile
    from flowstone.wiring import Wiring


def check_pins(wiring: Wiring, plan: Plan, folder: str, what: str, advice: str) -> None:
    """Read every file of a plan's read set anew; paths start from `folder`. DigestMismatch tells all that changed.

    `what` begins each line of the message, and `advice` is the last one. A file that is gone, or cannot
    be read, is changed too.
    """
    complaints = [text for pinned in plan.read_set if (text := _complaint(wiring, pinned, folder)) is not None]
    if complaints:
        raise DigestMismatch("\n".join([*(f"{what}: {text}" for text in complaints), advice]))


def _complaint(wiring: Wiring, pinned: SourceFile, folder: str) -> str | None:
    try:
        path = pinned.path if is_remote(pinned.path) else os.path.join(folder, pinned.path)
        found = wiring.source(path).digest
    except (SourceError, DigestMismatch) as error:
        return f"{pinned.path}: pinned as sha256:{pinned.digest}, but it cannot be read ({error.message})"
    if found == pinned.digest:
        return None
    return f"{pinned.path}: digest changed (sha256:{pinned.digest} → sha256:{found})"

"""What granting a connection asks of the places where secrets are kept."""

from __future__ import annotations

from typing import Protocol

SCHEME = "secret://"
"""What a value begins with that names a secret instead of being one."""


class Secrets(Protocol):
    def resolve(self, reference: str) -> str:
        """The value that a reference `secret://<store>/<name>` names, never an empty one.

        InputError says what is missing and where it was looked for; it never shows a value. Nobody
        keeps a value longer than its run, and none is written anywhere.
        """

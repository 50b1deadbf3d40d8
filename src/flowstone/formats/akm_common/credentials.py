"""Params → what in them looks like a credential: advice for people, and values for the redaction set.

A best-effort heuristic (akm facts 13): it never blocks a run and never changes a param.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from flowstone.plan.model import Param
from flowstone.redaction import SUBSTRING_CHARS
from flowstone.values import Json

_NAMES = (
    "secret",
    "token",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "privatekey",
    "private_key",
    "credential",
    "bearer",
    "auth_token",
    "authtoken",
    "client_secret",
)
_PREFIX = re.compile(r"(?:[sr]k-|gh[pousr]_|github_pat_|xox[baprs]-|AKIA|ASIA|AIza|ya29\.|-----BEGIN)")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]+")
BY_NAME = "has a secret-suggesting name"
BY_SHAPE = "has a secret-shaped value (long, high-entropy string)"


class Finding(msgspec.Struct, frozen=True):
    """`path` as in `a.b[0]`; `why` completes the sentence that begins with it."""

    path: str
    why: str


def scan(params: dict[str, Json]) -> list[Finding]:
    """One finding for each path that looks like a credential, in the order of the params."""
    return [Finding(path, why) for path, why, _ in _flagged(params, "", None)]


def flagged_values(params: dict[str, Json]) -> list[str]:
    """The text values of what `scan` finds, those inside a flagged object or list included."""
    found: dict[str, None] = {}
    for _, _, value in _flagged(params, "", None):
        for text in _texts(value):
            found.setdefault(text)
    return list(found)


def secrets_of(declared: Iterable[Param], params: dict[str, Json]) -> tuple[str, ...]:
    """The values of a run's params that are scrubbed wherever they show (akm facts, decision 7).

    A declared default stands in the workflow file for all to read: scrubbing a short one would hide
    nothing and take common words from every text, so it counts from `SUBSTRING_CHARS` characters on.
    """
    defaults = {param.name: param.default for param in declared if param.has_default}
    public = {name: value for name, value in params.items() if name in defaults and defaults[name] == value}
    given = {name: value for name, value in params.items() if name not in public}
    long = [text for text in flagged_values(public) if len(text.strip()) >= SUBSTRING_CHARS]
    return tuple(dict.fromkeys([*flagged_values(given), *long]))


def warning(finding: Finding) -> str:
    """The advice about a finding, for `warnings`."""
    return (
        f"Param {finding.path} {finding.why}. Params are not secret: they reach every unit and are stored "
        "and shown. Bind secrets with an env: reference instead."
    )


def _flagged(value: Json, path: str, key: str | None) -> Iterator[tuple[str, str, Json]]:
    if key is not None and any(name in key.lower() for name in _NAMES):
        yield path, BY_NAME, value
        return
    if isinstance(value, str) and _looks_secret(value.strip()):
        yield path, BY_SHAPE, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _flagged(item, f"{path}.{name}" if path else name, name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flagged(item, f"{path}[{index}]", None)


def _looks_secret(text: str) -> bool:
    if len(text) < 20 or any(char.isspace() for char in text):
        return False
    if _PREFIX.match(text):
        return True
    if len(text) >= 24 and _kinds(text) >= 3:
        return True
    return len(text) >= 32 and _ENCODED.fullmatch(text) is not None


def _kinds(text: str) -> int:
    """How many of lower-case letters, upper-case letters, digits and other characters occur."""
    return sum(re.search(kind, text) is not None for kind in ("[a-z]", "[A-Z]", "[0-9]", "[^A-Za-z0-9]"))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)

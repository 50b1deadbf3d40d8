"""The known keys of the configuration: what each may hold (akm facts 22), as a table of rules.

`problems` reads a whole document. A key that no rule names is somebody else's and is let alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from flowstone.plan import bounds
from flowstone.values import Json

PLATFORMS = (
    "opencode", "claude", "opencode-sdk", "codex", "copilot", "pi", "gemini", "aider", "amazonq", "openhands",
)  # fmt: skip
AGENT_FIELD_PLATFORMS = ("opencode", "opencode-sdk", "claude")
OCCASIONS = ("success", "failure", "blocked")
"""How a run may end that a notification command is told of."""
CREDENTIAL = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})"
ENDPOINT = r"(?s)https?://(?P<authority>[^/?#\s]+)(?P<path>[^?#\s]*)(?P<rest>[?#].*)?"


class Kind(StrEnum):
    """How `set` reads a text for a key."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    JSON = "json"


class Rule(NamedTuple):
    """`check` returns what is wrong with a value, as the end of a sentence, or None."""

    kind: Kind
    check: Callable[[Json], str | None]


class Problem(NamedTuple):
    key: str
    message: str


Check: TypeAlias = Callable[[Json], str | None]


def problems(document: dict[str, Json]) -> list[Problem]:
    """All that is wrong with the known keys of a document; what is merely missing is not wrong."""
    found = [
        Problem(key, message)
        for key, value in _known_values(document, "")
        if (message := _check(key, value)) is not None
    ]
    engines = document.get("engines")
    if isinstance(engines, dict):
        for name, engine in engines.items():
            found.extend(_engine_problems(name, engine))
    return found


def gaps(engine: dict[str, Json]) -> list[str]:
    """The keys that an engine still lacks before anything can be sent to it."""
    needed = {"llm": ("endpoint", "model"), "agent": ("platform",)}.get(engine.get("kind", ""), ("kind",))
    return [key for key in needed if engine.get(key) in (None, "")]


def rule_for(key: str) -> Rule | None:
    """The rule of a dotted key; names of engines and bundles match `*`."""
    parts = key.split(".")
    if len(parts) > 1 and parts[0] in ("engines", "bundles"):
        parts[1] = "*"
    return RULES.get(".".join(parts))


def known_keys() -> list[str]:
    return [key.replace("*", "<name>") for key in RULES]


def _known_values(value: Json, prefix: str) -> Iterator[tuple[str, Json]]:
    if prefix and rule_for(prefix) is not None:
        yield prefix, value
    if isinstance(value, dict) and prefix.count(".") < 2:
        for name, inner in value.items():
            yield from _known_values(inner, f"{prefix}.{name}" if prefix else name)


def _check(key: str, value: Json) -> str | None:
    rule = rule_for(key)
    return None if rule is None else rule.check(value)


def _engine_problems(name: str, engine: Json) -> Iterator[Problem]:
    key = f"engines.{name}"
    if not re.fullmatch(bounds.ENGINE_NAME, name) or len(name) > bounds.ENGINE_NAME_CHARS:
        yield Problem(key, "is not an engine name: use lower-case letters, digits and single dashes, at most 63")
    elif name.startswith("akm-"):
        yield Problem(key, 'must not begin with "akm-", which is reserved')
    if not isinstance(engine, dict):
        return
    platform = engine.get("platform")
    if "agent" in engine and platform not in AGENT_FIELD_PLATFORMS:
        yield Problem(f"{key}.agent", f"is understood by {', '.join(AGENT_FIELD_PLATFORMS)} only, not by {platform}")
    if "llmEngine" in engine and platform != "opencode-sdk":
        yield Problem(f"{key}.llmEngine", f"is understood by opencode-sdk only, not by {platform}")


def _text(value: Json) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be a text that is not blank"


def _boolean(value: Json) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _object(value: Json) -> str | None:
    return None if isinstance(value, dict) else "must be an object"


def _texts(value: Json) -> str | None:
    fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if fits else "must be a list of texts"


def _integer(low: int, high: int | None = None) -> Check:
    def check(value: Json) -> str | None:
        whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int_of(value)
        if whole and value >= low and (high is None or value <= high):
            return None
        return f"must be a whole number from {low} to {high}" if high else f"must be a whole number from {low} up"

    return check


def int_of(value: float) -> int | None:
    """The whole number that a JSON number stands for, or None."""
    return int(value) if math.isfinite(value) and value == int(value) else None


def _or_null(check: Check) -> Check:
    def either(value: Json) -> str | None:
        message = None if value is None else check(value)
        return message and f"{message}, or null"

    return either


def _one_of(*words: str) -> Check:
    return lambda value: None if value in words else f"must be one of {', '.join(words)}"


def _finite(value: Json) -> str | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return None if fits else "must be a number"


def _engine_ref(value: Json) -> str | None:
    fits = isinstance(value, str) and len(value) <= bounds.ENGINE_NAME_CHARS and re.fullmatch(bounds.ENGINE_NAME, value)
    return None if fits else "must be the name of an engine"


def _credential(value: Json) -> str | None:
    if isinstance(value, str) and re.fullmatch(CREDENTIAL, value):
        return None
    return 'must name an environment variable, as "$NAME" or "${NAME}"; a key itself does not belong here'


def _endpoint(value: Json) -> str | None:
    match = re.fullmatch(ENDPOINT, value) if isinstance(value, str) else None
    if match is None:
        return "must be an http or https URL"
    if "@" in match["authority"]:
        return "must not hold a user name or password"
    if match["rest"]:
        return "must have no query and no fragment"
    if not match["path"].endswith("/chat/completions"):
        return "must have a path that ends in /chat/completions"
    return None


def _extra_params(value: Json) -> str | None:
    from flowstone.values import canonical_bytes

    if not isinstance(value, dict):
        return "must be an object"
    too_large = len(canonical_bytes(value)) > bounds.EXTRA_PARAMS_BYTES
    return "must be at most 64 KiB as JSON" if too_large else None


def _limits(value: Json) -> str | None:
    if not isinstance(value, dict):
        return 'must be an object such as {"deploy": {"max": 1, "workflows": ["workflows/deploy-*"]}}'
    for name, limit in value.items():
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
            return f'must name each limit with lower-case letters, digits and dashes, not "{name}"'
        if not isinstance(limit, dict) or not {"max", "workflows"} >= set(limit) or _integer(1)(limit.get("max")):
            return f'must give "{name}" a "max" (a whole number from 1 up) and "workflows", and nothing else'
        if _texts(limit.get("workflows")) or not limit["workflows"]:
            return f'must give "{name}" its "workflows": a list of refs or paths, * for any characters'
    return None


def _notify(value: Json) -> str | None:
    if not isinstance(value, dict) or not {"command", "on"} >= set(value):
        return 'must be an object such as {"command": ["notify", "--flag"], "on": ["failure", "blocked"]}'
    command = value.get("command")
    if _texts(command) or not command or not command[0] or any("\0" in word for word in command):
        return 'must have a "command": a list of texts, the program first'
    if _texts(value.get("on", [])) or not set(OCCASIONS) >= set(value.get("on", [])):
        return f'may list in "on" only {", ".join(OCCASIONS)}'
    return None


def _aliases(value: Json) -> str | None:
    return "is no longer read here: move the aliases to models.json beside this file"


_POSITIVE = Rule(Kind.NUMBER, _integer(1))
_TEXT = Rule(Kind.TEXT, _text)
_BOOLEAN = Rule(Kind.BOOLEAN, _boolean)
_OBJECT = Rule(Kind.JSON, _object)
_TEXTS = Rule(Kind.JSON, _texts)
_ENGINE = Rule(Kind.TEXT, _engine_ref)

RULES: dict[str, Rule] = {
    "configVersion": _TEXT,
    "engines": _OBJECT,
    "engines.*": _OBJECT,
    "engines.*.kind": Rule(Kind.TEXT, _one_of("llm", "agent")),
    "engines.*.endpoint": Rule(Kind.TEXT, _endpoint),
    "engines.*.model": _TEXT,
    "engines.*.provider": _TEXT,
    "engines.*.apiKey": Rule(Kind.TEXT, _credential),
    "engines.*.apiKeyFile": _TEXT,
    "engines.*.apiKeySecretRef": _TEXT,
    "engines.*.temperature": Rule(Kind.NUMBER, _finite),
    "engines.*.maxTokens": _POSITIVE,
    "engines.*.timeoutMs": Rule(Kind.NUMBER, _or_null(_integer(1, bounds.TIMEOUT_MS))),
    "engines.*.concurrency": _POSITIVE,
    "engines.*.supportsJsonSchema": _BOOLEAN,
    "engines.*.extraParams": Rule(Kind.JSON, _extra_params),
    "engines.*.contextLength": _POSITIVE,
    "engines.*.enableThinking": _BOOLEAN,
    "engines.*.reasoningEffort": _TEXT,
    "engines.*.platform": Rule(Kind.TEXT, _one_of(*PLATFORMS)),
    "engines.*.bin": _TEXT,
    "engines.*.args": _TEXTS,
    "engines.*.workspace": _TEXT,
    "engines.*.agent": _TEXT,
    "engines.*.llmEngine": _ENGINE,
    "defaults": _OBJECT,
    "defaults.engine": _ENGINE,
    "defaults.llmEngine": _ENGINE,
    "workflow": _OBJECT,
    "workflow.maxConcurrency": _POSITIVE,
    "workflow.defaultMapConcurrency": _POSITIVE,
    "workflow.hostConcurrency": Rule(Kind.NUMBER, _integer(1, bounds.CONCURRENCY)),
    "workflow.judgeEngine": _ENGINE,
    "workflow.limits": Rule(Kind.JSON, _limits),
    "workflow.notify": Rule(Kind.JSON, _notify),
    "execution": _OBJECT,
    "execution.allowedTools": _TEXTS,
    "bundles": _OBJECT,
    "bundles.*": _OBJECT,
    "bundles.*.path": _TEXT,
    "bundles.*.writable": _BOOLEAN,
    "defaultBundle": _TEXT,
    "scheduler": _OBJECT,
    "scheduler.enabled": _TEXTS,
    "scheduler.backend": Rule(Kind.TEXT, _one_of("crontab", "systemd", "launchd", "windows")),
    "scheduler.missed": Rule(Kind.TEXT, _one_of("skip", "once", "all")),
    "modelAliases": Rule(Kind.JSON, _aliases),
}

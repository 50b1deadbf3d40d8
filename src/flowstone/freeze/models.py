"""models.json, packaged and the user's over it: a model alias and an engine give the model to ask.

Names are compared without regard to case. An alias has a profile for each column, an engine's name
or a platform; a known alias without a fitting column is refused rather than guessed (akm facts 22).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from flowstone.errors import ConfigError
from flowstone.freeze.inference import merged, of_engine, read_inference
from flowstone.values import Json

VERSION = 1
_PROFILE_KEYS = ("model", "inference", "engine")


class Chosen(msgspec.Struct, frozen=True):
    """A model (None: the engine's own) and the tuning that its alias brings."""

    model: str | None
    inference: dict[str, Any] = {}


class ModelMap:
    """The layers of aliases, the packaged one first."""

    def __init__(self, layers: Sequence[tuple[str, Json]], setter: str) -> None:
        """`layers` are documents with the names of their files; `setter` is the command for hints."""
        self._setter = setter
        self._aliases: dict[str, Any] = {}
        for path, document in layers:
            self._aliases = _laid_over(self._aliases, _layer(path, document))

    def choose(self, name: str, columns: Sequence[str], engines: Mapping[str, Any]) -> Chosen:
        """The model that `name` means for an engine: by the first of its `columns` that the alias has.

        A name that is no alias is an exact model. ConfigError for an alias that fits no column.
        """
        alias = self._aliases.get(name.lower())
        if alias is None:
            return Chosen(name)
        found = [alias[column] for column in columns if alias.get(column) is not None]
        if not found:
            known = ", ".join(sorted(column for column, profile in alias.items() if profile is not None)) or "none"
            raise ConfigError(
                f'The model alias "{name}" has no column for {" or ".join(columns)}; it has: {known}.',
                hint=f"Add aliases.{name}.{columns[0]} to models.json beside config.json, or name an exact model.",
            )
        return self._chosen(name, found[0], engines)

    def _chosen(self, alias: str, profile: Mapping[str, Any], engines: Mapping[str, Any]) -> Chosen:
        inference = profile.get("inference") or {}
        name = profile.get("engine")
        if name is None:
            return Chosen(profile.get("model"), inference)
        engine = engines.get(name)
        if not isinstance(engine, dict) or not engine.get("model"):
            lack = "is not configured" if not isinstance(engine, dict) else "names no model"
            raise ConfigError(
                f'The model alias "{alias}" takes the model of engine "{name}", which {lack}.',
                hint=f"{self._setter} engines.{name}.model <model>",
            )
        own = of_engine(engine) if engine.get("kind") == "llm" else {}
        return Chosen(engine["model"], merged((own, inference)))


def _layer(path: str, document: Json) -> dict[str, dict[str, Any] | None]:
    """The aliases of a document, checked, names in lower case; a string stands for its model."""
    if not isinstance(document, dict):
        raise _wrong(path, "must hold an object")
    if document.get("version") != VERSION or isinstance(document["version"], bool):
        raise _wrong(path, f'must have "version": {VERSION}')
    unknown = [key for key in document if key not in ("version", "aliases", "prices")]
    if unknown:
        raise _wrong(path, f'has the unknown key "{unknown[0]}"; it takes version, aliases and prices')
    found: dict[str, dict[str, Any] | None] = {}
    for alias, columns in _folded(path, "aliases", document.get("aliases", {})).items():
        place = f"aliases.{alias}"
        found[alias] = (
            None
            if columns is None
            else {
                column: _profile(path, f"{place}.{column}", value)
                for column, value in _folded(path, place, columns).items()
            }
        )
    return found


def _folded(path: str, place: str, value: Json) -> dict[str, Json]:
    """A mapping with its keys in lower case; two that become the same are refused."""
    if not isinstance(value, dict):
        raise _wrong(path, f"{place} must be an object")
    found: dict[str, Json] = {}
    for key, inner in value.items():
        folded = key.strip().lower()
        if not folded:
            raise _wrong(path, f"{place} has a blank name")
        if folded in found:
            raise _wrong(path, f'{place} has "{key}" twice: names are compared without regard to case')
        found[folded] = inner
    return found


def _profile(path: str, place: str, value: Json) -> str | dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip():
        return value.strip()
    if not isinstance(value, dict):
        raise _wrong(path, f"{place} must be a model or an object with {', '.join(_PROFILE_KEYS)}")
    unknown = [key for key in value if key not in _PROFILE_KEYS]
    if unknown:
        raise _wrong(path, f'{place} has the unknown key "{unknown[0]}"; it takes {", ".join(_PROFILE_KEYS)}')
    texts = [key for key in ("model", "engine") if value.get(key) is not None]
    if len(texts) > 1:
        raise _wrong(path, f"{place} has both model and engine; one of them says which model it is")
    for key in texts:
        if not isinstance(value[key], str) or not value[key].strip():
            raise _wrong(path, f"{place}.{key} must be a text that is not blank")
    profile = dict(value)
    if value.get("inference") is not None:
        inference = read_inference(value["inference"])
        if isinstance(inference, str):
            raise _wrong(path, f"{place}.inference {inference}")
        profile["inference"] = inference
    return profile


def _laid_over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The nearer layer over the farther one; every profile comes out as an object."""
    result = dict(base)
    for alias, columns in over.items():
        if columns is None:
            result.pop(alias, None)
            continue
        known = dict(result.get(alias) or {})
        for column, profile in columns.items():
            known[column] = _merged_profile(known.get(column), profile)
        result[alias] = known
    return result


def _merged_profile(base: Mapping[str, Any] | None, over: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if over is None:
        return None
    if isinstance(over, str):
        return {"model": over}
    result = dict(base or {})
    if over.get("model") is not None:
        result.pop("engine", None)
    if over.get("engine") is not None:
        result.pop("model", None)
    return merged((result, over))


def _wrong(path: str, message: str) -> ConfigError:
    return ConfigError(f"{path}: {message}.")

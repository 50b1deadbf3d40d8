"""The configuration file: `config.json` to a document and back, and dotted access to its values.

Keys that nobody here knows keep their values and their order. Writing replaces the file at once,
under a lock, and keeps its mode.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial

from flowstone.config.rules import Kind, Rule, known_keys, problems, rule_for
from flowstone.errors import ConfigError, InputError, UsageError
from flowstone.values import Json, JsonError, decode_json, pretty_json

CONFIG_VERSION = "0.9.0"
MAX_BYTES = 4 * 1024 * 1024


def read_config(path: str) -> dict[str, Json]:
    """The document of a file; empty where there is none. Anything but a JSON object: ConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES} bytes")
    return _decode(path, data)


def write_config(path: str, document: dict[str, Json]) -> None:
    """Replace the file with `document`; its mode stays, a new file is for its owner only."""
    real = os.path.realpath(path)
    text = pretty_json(document) + "\n"
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
        _replace(real, text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", code="CONFIG_WRITE_FAILED") from None


def update_config(path: str, change: Callable[[dict[str, Json]], dict[str, Json]]) -> dict[str, Json]:
    """Read, change and write the file while no other process does; returns the new document."""
    import fcntl

    folder = os.path.dirname(os.path.realpath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", code="CONFIG_WRITE_FAILED") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = change(read_config(path))
        write_config(path, document)
        return document
    finally:
        os.close(lock)


def get_value(document: dict[str, Json], key: str) -> Json:
    """The value of a dotted key. A known key that is not set is None; another one: UsageError."""
    value: Json = document
    for part in split_key(key):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif rule_for(key) is not None:
            return None
        else:
            raise UsageError(f'Config key "{key}" is not set.', hint=_near(key))
    return value


def set_value(document: dict[str, Json], key: str, text: str) -> dict[str, Json]:
    """A document in which `key` has the value that `text` spells for its type.

    A value that its key may not hold raises InputError; what was wrong elsewhere before may stay.
    """
    parts = split_key(key)
    value = parse_value(key, text)
    result = _with(document, parts, value, key)
    result.setdefault("configVersion", CONFIG_VERSION)
    before = set(problems(document))
    wrong = [problem for problem in problems(result) if problem.key == key or problem not in before]
    if wrong:
        raise InputError(f"{wrong[0].key} {wrong[0].message}.")
    return result


def unset_value(document: dict[str, Json], key: str) -> dict[str, Json]:
    """A document without `key`; UsageError when it is not there."""
    *parents, last = split_key(key)
    result = dict(document)
    holder = result
    for part in parents:
        inner = holder.get(part)
        if not isinstance(inner, dict):
            raise UsageError(f'Config key "{key}" is not set.', hint=_near(key))
        holder[part] = holder = dict(inner)
    if last not in holder:
        raise UsageError(f'Config key "{key}" is not set.', hint=_near(key))
    del holder[last]
    return result


def parse_value(key: str, text: str) -> Json:
    """Read `text` by the type of its key; for an unknown key as JSON if it is that, else as text."""
    rule = rule_for(key)
    if rule is None:
        try:
            return decode_json(text)
        except JsonError:
            return text
    return text if rule.kind is Kind.TEXT else _typed(key, rule, text)


def split_key(key: str) -> list[str]:
    parts = key.split(".")
    if not all(part.strip() for part in parts):
        raise InputError(f'"{key}" is not a config key: write names joined by single dots.')
    return parts


def check_document(path: str, document: dict[str, Json]) -> None:
    """Raise ConfigError with all that is wrong with the known keys of a document."""
    found = problems(document)
    if found:
        lines = "\n".join(f"{path}: {problem.key} {problem.message}." for problem in found)
        raise ConfigError(lines, hint=f"Mend it with `akm config set {found[0].key} …` or `akm config unset`.")


def _decode(path: str, data: bytes) -> dict[str, Json]:
    try:
        document = decode_json(data.removeprefix(b"\xef\xbb\xbf"), whole_floats=False)
    except JsonError as error:
        cause = error.__context__
        if isinstance(cause, json.JSONDecodeError):
            raise ConfigError(f"{path}:{cause.lineno}:{cause.colno}: not valid JSON: {cause.msg}") from None
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path}:1:1: the configuration must be one JSON object")
    json.loads(data, object_pairs_hook=partial(_unique, path))
    return document


def _unique(path: str, pairs: list[tuple[str, Json]]) -> None:
    """ConfigError for an object that has a key twice: which one is meant, nobody knows, and a change would drop one."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ConfigError(f'{path}: the key "{name}" stands twice in one object', hint="Remove one of them.")
        seen.add(name)


def _replace(real: str, data: bytes) -> None:
    try:
        mode = os.stat(real).st_mode & 0o7777
    except FileNotFoundError:
        mode = 0o600
    temporary = f"{real}.{os.getpid()}.tmp"
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, real)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _with(document: dict[str, Json], parts: list[str], value: Json, key: str) -> dict[str, Json]:
    result = dict(document)
    holder = result
    for part in parts[:-1]:
        inner = holder.get(part)
        if inner is not None and not isinstance(inner, dict):
            raise InputError(f'"{key}" cannot be set: "{part}" is no object. Set it as a whole, as JSON.')
        holder[part] = holder = dict(inner or {})
    holder[parts[-1]] = value
    return result


def _typed(key: str, rule: Rule, text: str) -> Json:
    try:
        return decode_json(text)
    except JsonError as error:
        if rule.kind is Kind.JSON:
            raise InputError(f"{key} takes JSON: {error}", code="INVALID_JSON_ARGUMENT") from None
        raise InputError(f'{key} takes a {rule.kind}; got "{text}".') from None


def _near(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, known_keys(), 3, 0.5)
    return f"Known keys near it: {', '.join(near)}." if near else "`akm config list` prints what is set."

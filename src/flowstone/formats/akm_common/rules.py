"""The rules of single values that both akm parsers and the source IR decoder apply.

Each takes a value of the right type and returns what is wrong with it, or None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowstone.plan import bounds
from flowstone.values import Json, canonical_bytes, clip

LLM_KEYS = (
    "temperature",
    "max_tokens",
    "supports_json_schema",
    "extra_params",
    "context_length",
    "enable_thinking",
)
_LLM_COUNTS = ("max_tokens", "context_length")
_LLM_FLAGS = ("supports_json_schema", "enable_thinking")
_OWN_PARAMS = frozenset(
    {
        "model",
        "messages",
        "temperature",
        "maxtokens",
        "responseformat",
        "stream",
        "streamoptions",
        "enablethinking",
        "chattemplatekwargs",
    }
)
_CREDENTIAL_PARAMS = frozenset(
    {
        "authorization",
        "headers",
        "apikey",
        "token",
        "password",
        "secret",
        "cookie",
        "setcookie",
    }
)

_ENGINE_NAME = re.compile(bounds.ENGINE_NAME)
_ENV_NAME = re.compile(bounds.ENV_NAME)
_DRIVE = re.compile(r"^[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WORD = "[A-Za-z0-9_./:@+=,-]+"
RUN_PATTERN = rf"{_WORD}(?:[ \t]+{_WORD})*"
_SAFE_RUN = re.compile(RUN_PATTERN)


def engine_problem(name: str) -> str | None:
    """An engine name: lower-case words joined by single dashes."""
    if len(name) > bounds.ENGINE_NAME_CHARS:
        return f'names the engine "{clip(name, 80)}", over the {bounds.ENGINE_NAME_CHARS} characters of a name'
    if not _ENGINE_NAME.fullmatch(name):
        return f'names the engine "{name}"; a name is lower-case words joined by single dashes'
    return None


def argument_problem(argument: str) -> str | None:
    """One entry of an argv."""
    if not argument:
        return "must be a non-empty string"
    size = utf8_size(argument)
    if size > bounds.ARGV_ENTRY_BYTES:
        return f"has {size:,} bytes, over the {bounds.ARGV_ENTRY_BYTES} of one entry"
    return "holds a NUL character, which no argument can carry" if "\0" in argument else None


def env_name_problem(name: str) -> str | None:
    if _ENV_NAME.fullmatch(name):
        return None
    return f'holds "{clip(name, 80)}", which is no variable name (letters, digits and "_", no digit first)'


def folder_problem(folder: str) -> str | None:
    """A working folder: relative, and by its spelling never outside its base."""
    if len(folder) > bounds.CWD_CHARS:
        return f"has over {bounds.CWD_CHARS} characters"
    if _CONTROL.search(folder):
        return "holds a control character"
    path = folder.replace("\\", "/")
    if not path:
        return "must not be empty"
    if path.startswith("/") or _DRIVE.match(path) or path.startswith("~"):
        return f'must be relative, got "{clip(folder, 80)}"'
    segments = path.split("/")
    if ".." in segments:
        return f'must stay inside its base: ".." is refused, got "{clip(folder, 80)}"'
    if "" in segments:
        return f'holds an empty segment: "{clip(folder, 80)}"'
    return None


def normal_folder(folder: str) -> str:
    """A folder that has no problem, with forward slashes and without `.` segments."""
    kept = [part for part in folder.replace("\\", "/").split("/") if part != "."]
    return "/".join(kept) or "."


def run_problem(text: str) -> str | None:
    """A `run:` text of the YAML format: token-safe words on one line."""
    if "\r" in text or "\n" in text:
        return "must be one line: a line break separates commands, which only a shell script can hold"
    words = normal_run(text)
    if not words:
        return "must not be empty"
    if _SAFE_RUN.fullmatch(words):
        return None
    odd = next(char for char in words if not _SAFE_RUN.fullmatch(char) and char != " ")
    return f"holds {odd!r}; only words of letters, digits and _ . / : @ + = , - are run"


def normal_run(text: str) -> str:
    """The words of a run text with one blank between them."""
    return re.sub(r"[ \t]+", " ", text.strip(" \t"))


def llm_problems(bag: Mapping[str, Json]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with an `llm:` bag, each with the path inside the bag."""
    for key, value in bag.items():
        if key == "temperature" and not _is_number(value):
            yield (key,), f'"{key}" must be a finite number'
        elif key in _LLM_COUNTS and not (_is_integer(value) and value > 0):
            yield (key,), f'"{key}" must be a positive integer'
        elif key in _LLM_FLAGS and not isinstance(value, bool):
            yield (key,), f'"{key}" must be true or false'
        elif key == "extra_params":
            yield from _extra_params_problems(value)


def llm_faults(bag: Mapping[str, Json]) -> Iterator[str]:
    """What is wrong with an `llm:` bag whose keys have not been checked yet."""
    yield from (f'"{key}" is no key of an llm bag' for key in bag if key not in LLM_KEYS)
    yield from (message for _, message in llm_problems(bag))


def _extra_params_problems(value: Json) -> Iterator[tuple[tuple[str | int, ...], str]]:
    root: tuple[str | int, ...] = ("extra_params",)
    if not isinstance(value, dict):
        yield root, '"extra_params" must be a mapping'
        return
    if len(canonical_bytes(value)) > bounds.EXTRA_PARAMS_BYTES:
        yield root, f'"extra_params" has over {bounds.EXTRA_PARAMS_BYTES // 1024} KiB'
    for key in value:
        if _letters(key) in _OWN_PARAMS:
            yield (*root, key), f'"extra_params" may not set "{key}", which the request sets itself'
    yield from _credential_keys(value, root)


def _credential_keys(value: Json, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    inner: Sequence[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for key, item in inner:
        if isinstance(key, str) and _letters(key) in _CREDENTIAL_PARAMS:
            yield (*path, key), f'"extra_params" may not hold "{key}": credentials belong to the engine'
        yield from _credential_keys(item, (*path, key))


def _letters(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _is_integer(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Json) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def whole_numbers(value: Json) -> Json:
    """A JSON value with `1.0` as the integer 1 (and −0 as 0), as languages with one number type have it."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return value


def utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))

"""Declared inputs and what a caller gives → the resolved inputs of a run, in orun's words.

Text from `--set` is coerced by the declared type; a parent's `with:` gives values as they are.
Messages never show the value of a secret input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from flowstone.errors import InputError
from flowstone.plan.model import Param
from flowstone.values import Json, JsonError, canonical_json, clip, decode_json


class Misfit(ValueError):
    """A value does not fit its declaration; the message goes on from the name of the input."""


def resolve_inputs(
    params: Sequence[Param],
    texts: Mapping[str, str],
    values: Mapping[str, Json] | None = None,
    stored: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """The inputs of a run that starts or is taken up again.

    `texts` are those of `--set`, `values` ready ones: of a caller, or the evaluated `with:` of the
    step that nests the workflow. `stored` are the inputs of the run that is resumed, without its
    secret ones: they stand, another value for one is refused, and a secret input that the run needs
    must be given again. All complaints are raised as one InputError, a line each.
    """
    ready = values or {}
    complaints = _unknown(params, {**ready, **texts})
    found: dict[str, Json] = {}
    for param in params:
        name = param.name
        try:
            if name in texts:
                found[name] = coerce(texts[name], param)
            elif ready.get(name) is not None:
                found[name] = _checked(ready[name], param)
            elif stored is not None and name in stored:
                found[name] = stored[name]
            _complete(param, found)
            _same_as_stored(param, found, stored)
        except Misfit as error:
            complaints.append(f"inputs.{name}{error}")
    if complaints:
        raise InputError("\n".join(complaints))
    return found


def coerce(text: str, param: Param) -> Json:
    """The value of a text by the declared type; Misfit says why it has none."""
    match param.type:
        case "string" | None:
            value: Json = text
        case "boolean":
            if text not in {"true", "false"}:
                raise Misfit(f": {_shown(text, param)} is no boolean; write true or false")
            value = text == "true"
        case kind:
            try:
                value = decode_json(text, whole_floats=False, max_depth=64)
            except JsonError:
                raise Misfit(f": {_shown(text, param)} is no {kind}{_as_json(kind)}") from None
    return _checked(value, param)


def fit(value: Json, kind: str | None, allowed: Sequence[Json] | None = None, pattern: str | None = None) -> Json:
    """The value if it is of the type, among the allowed ones and matches; else Misfit."""
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind is not None and not _is_kind(value, kind):
        raise Misfit(f"must be {_ARTICLES[kind]} {kind}")
    if allowed is not None and not any(_same(value, one) for one in allowed):
        raise Misfit(f"{_quoted(value)} not in [{' '.join(_bare(one) for one in allowed)}]")
    if pattern is not None and not matches(pattern, _bare(value)):
        raise Misfit(f"{_quoted(value)} does not match {pattern}")
    return value


def matches(pattern: str, text: str) -> bool:
    """Whether an RE2 pattern matches anywhere in the text."""
    return bool(_compiled(pattern).search(text))


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is no RE2; None when it is one."""
    import re2

    try:
        _compiled(pattern)
    except (re2.error, ValueError) as error:
        detail = error.args[0] if error.args else error
        return detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    return None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _unknown(params: Sequence[Param], given: Mapping[str, Any]) -> list[str]:
    names = {param.name for param in params}
    declared = f" (declared: {', '.join(sorted(names))})" if names else " (the workflow declares none)"
    return [f'unknown input "{name}"{declared}' for name in given if name not in names]


def _complete(param: Param, values: dict[str, Json]) -> None:
    """Fill in the default, or complain that a required input is missing."""
    if param.name in values:
        return
    if param.has_default:
        values[param.name] = param.default
    elif param.required:
        about = f": {param.description}" if param.description else ""
        raise Misfit(f" is required (--set {param.name}=...){about}")


def _same_as_stored(param: Param, values: Mapping[str, Json], stored: Mapping[str, Json] | None) -> None:
    if stored is None or param.secret:
        return
    before = stored.get(param.name)
    now = values.get(param.name)
    if not _same(before, now):
        raise Misfit(
            f": the run was started with {_quoted(before)}, not {_quoted(now)}; a resumed run keeps its inputs"
        )


def _checked(value: Json, param: Param) -> Json:
    try:
        return fit(value, param.type, param.values, param.pattern)
    except Misfit as error:
        text = str(error)
        if not param.secret:
            shown = "" if text.startswith('"') else f"{_quoted(value)} "
            raise Misfit(f": {shown}{text}") from None
        rule = text.removeprefix(f"{_quoted(value)} ")
        raise Misfit(f": the value (not shown, it is secret) {rule}") from None


def _shown(text: str, param: Param) -> str:
    return "the value (not shown, it is secret)" if param.secret else f'"{clip(text, 80)}"'


def _as_json(kind: str) -> str:
    return {"array": ' in JSON, such as ["a", 1]', "object": ' in JSON, such as {"a": 1}'}.get(kind, "")


def _is_kind(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _bare(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _quoted(value: Json) -> str:
    return f'"{clip(_bare(value), 80)}"'


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_ARTICLES = {kind: "an" if kind[0] in "aio" else "a" for kind in _KINDS}

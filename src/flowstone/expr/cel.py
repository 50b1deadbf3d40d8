"""CEL text → a compiled expression that knows what it reads → its value.

Both languages' checkers compile here, and the pure scheduler evaluates here: an evaluation gets
only the variables that the expression reads and is bounded in steps and in size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from flowstone.expr.cel_ast import read_ast
from flowstone.expr.cel_errors import CelProblem, compile_problems, evaluation_error
from flowstone.expr.cel_reads import Read, reads_of
from flowstone.expr.cel_size import check_size, multiplies, size_of
from flowstone.expr.cel_values import passable
from flowstone.expr.lexer import Kind, tokens
from flowstone.expr.model import Cel

CACHED = 2_048
"""Compiled expressions that are kept; one of a few dozen nodes takes some 20 kB."""


class CelEnvironment(msgspec.Struct, frozen=True):
    """The variables that an expression may use at its position (reference, "Expressions")."""

    variables: tuple[str, ...]


EVERYWHERE = CelEnvironment(("inputs", "connections", "steps"))
STEP_OUTPUTS = CelEnvironment((*EVERYWHERE.variables, "output", "exitCode", "stdout", "stderr"))
POLL_UNTIL = CelEnvironment((*STEP_OUTPUTS.variables, "attempt"))


@lru_cache(maxsize=64)
def environment_of(names: tuple[str, ...]) -> CelEnvironment:
    """The smallest environment that has these variables.

    Of a checked expression's variables mostly the one in which it was checked: then a process that
    checked it has it compiled.
    """
    return next((e for e in (EVERYWHERE, STEP_OUTPUTS) if set(names) <= set(e.variables)), POLL_UNTIL)


Keys = dict[str, frozenset[str | None]]
"""The keys that are read of a variable, and of each of them those read below (None: the whole of it)."""


class CompiledCel(msgspec.Struct, frozen=True):
    """`program` is the library's; `wanted` are the keys that it needs of each variable (None: all of it).

    `aliases` tells the key that stands for each dashed step name. `tree` is kept where an evaluation
    could multiply sizes, so that it is bounded in memory too.
    """

    source: str
    program: Any
    reads: tuple[Read, ...]
    wanted: dict[str, Keys | None]
    aliases: dict[str, str]
    tree: Any = None

    @property
    def model(self) -> Cel:
        """The expression as plans carry it."""
        steps = dict.fromkeys(read.name for read in self.reads if read.root == "steps" and read.name)
        return Cel(self.source, tuple(steps), tuple(dict.fromkeys(read.root for read in self.reads)))


class CelRefused(msgspec.Struct, frozen=True):
    """An expression that does not compile, with all that is wrong with it."""

    problems: tuple[CelProblem, ...]


@lru_cache(maxsize=CACHED)
def compile_cel(source: str, environment: CelEnvironment) -> CompiledCel | CelRefused:
    """Compile and type-check an expression against the variables of its position.

    Every variable is dynamically typed: literals that clash are found, values are checked when the
    expression is evaluated. A computed key of `steps` is refused, because no check could tell
    whether the step is visible.
    """
    if not source.strip():
        return CelRefused((CelProblem("empty expression"),))
    if "\0" in source or not _encodable(source):
        return CelRefused((CelProblem("the expression holds a NUL or half of a character"),))
    text, aliases = _without_dashes(source)
    library = _library_environment(environment.variables)
    try:
        program = library.compile(text)
    except RuntimeError as error:
        return CelRefused(_explained(compile_problems(str(error), text), source))
    serialized = program.serialize()
    tree = read_ast(serialized)
    if b"@result" in serialized:
        from flowstone.expr.cel_chunks import in_chunks

        rewritten = in_chunks(serialized)
        program = program if rewritten is None else library.deserialize(rewritten)
    names = dict(aliases)
    reads = tuple(
        msgspec.structs.replace(read, name=names.get(read.name or "", read.name))
        for read in reads_of(tree)
        if read.root in environment.variables
    )
    computed = tuple(_computed(read) for read in reads if read.root == "steps" and read.name is None)
    if computed:
        return CelRefused(computed)
    spelt = {name: alias for alias, name in aliases}
    return CompiledCel(source, program, reads, _wanted(reads), spelt, tree if multiplies(tree) else None)


def evaluate(compiled: CompiledCel, scope: Mapping[str, Any]) -> Any:
    """The value of an expression: None, bool, int, float, str, bytes, datetime, timedelta, list,
    dict or a type of the library.

    `scope` holds the variables by name; of `steps`, `inputs`, `connections` and `output` only the
    keys that the expression names are looked up. Raises CelError.
    """
    activation = _activation(compiled, scope)
    if compiled.tree is not None:
        check_size(compiled.tree, {name: size_of(value) for name, value in activation.items()})
    try:
        result = compiled.program.eval(data=activation)
        value = result.plain_value()
    except RuntimeError as error:
        raise evaluation_error(str(error)) from None
    if isinstance(value, str) and result.type().name() == "ERROR":
        raise evaluation_error(str(value))
    return value


def _activation(compiled: CompiledCel, scope: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that the expression reads, cut down to what it reads of them."""
    return {
        root: passable(scope[root] if keys is None else _pruned(scope[root], keys, compiled.aliases), root)
        for root, keys in compiled.wanted.items()
        if root in scope
    }


def _wanted(reads: tuple[Read, ...]) -> dict[str, Keys | None]:
    wanted: dict[str, Keys | None] = {}
    for read in reads:
        known = wanted.setdefault(read.root, {})
        if read.name is None or read.root not in _CUT_DOWN:
            wanted[read.root] = None
        elif known is not None:
            field = set() if read.present else {read.field if read.root in _CUT_DEEPER else None}
            known[read.name] = known.get(read.name, frozenset()) | field
    return wanted


def _pruned(variable: Mapping[str, Any], keys: Keys, aliases: dict[str, str]) -> dict[str, Any]:
    """The keys asked for; null stands for a value of which only the presence matters."""
    pruned = {}
    for name, fields in keys.items():
        if name not in variable:
            continue
        value = variable[name] if fields else None
        if None not in fields and isinstance(value, Mapping):
            value = {field: value[field] for field in fields if field is not None and field in value}
        pruned[name] = value
        if name in aliases:
            pruned[aliases[name]] = value
    return pruned


def _without_dashes(source: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The source with each dashed step name in dot form spelt as one CEL name of the same length.

    The sign that stands for a dash occurs nowhere in the source, so that the alias of a name can
    be no other name; offsets stay as they are.
    """
    spans = list(_dashed_names(source)) if "-" in source and "steps" in source else []
    if not spans:
        return source, ()
    sign = next((sign for sign in _SIGNS if sign not in source), "_")
    aliases: dict[str, str] = {}
    text = source
    for start, end in spans:
        alias = source[start:end].replace("-", sign)
        aliases[alias] = source[start:end]
        text = text[:start] + alias + text[end:]
    return text, tuple(aliases.items())


def _dashed_names(source: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    before = ["", "", ""]
    for token in tokens(source):
        text = source[token.start : token.end]
        if token.kind is Kind.NAME and before[1:] == ["steps", "."] and before[0] != ".":
            end = _NAME_WITH_DASHES.match(source, token.start).end()  # type: ignore[union-attr]
            if "-" in source[token.start : end]:
                found.append((token.start, end))
        before = [*before[1:], text]
    return found


def _explained(problems: tuple[CelProblem, ...], source: str) -> tuple[CelProblem, ...]:
    """Problems with a variable that exists elsewhere say where it does."""
    explained = []
    for problem in problems:
        message = problem.message
        for name, place in _ELSEWHERE.items():
            if message == f"undeclared reference to '{name}'":
                message += f" ({name} is there in {place} only)"
        explained.append(CelProblem(message, min(problem.offset, len(source))))
    return tuple(explained)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _computed(read: Read) -> CelProblem:
    return CelProblem("steps must be read as steps.<name>: a computed step name cannot be checked", read.offset)


@lru_cache(maxsize=8)
def _library_environment(variables: tuple[str, ...]) -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings

    declared = {name: cel.Type.DYN for name in variables}
    return cel.NewEnv(variables=declared, extensions=[ext_strings.ExtStrings()])


_NAME_WITH_DASHES = re.compile(r"[A-Za-z0-9_-]*")
_CUT_DOWN = (*EVERYWHERE.variables, "output")
"""Variables of which only the keys named are passed in; of the next ones only the keys of those too."""
_CUT_DEEPER = ("steps", "output")
_SIGNS = "_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ELSEWHERE = {
    "attempt": "poll.until",
    **dict.fromkeys(("output", "exitCode", "stdout", "stderr"), "outputs and poll.until"),
}

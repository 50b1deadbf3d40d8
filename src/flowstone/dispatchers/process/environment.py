"""Builds a command's environment from nothing: base names, provenance, bindings, context.

Only what the plan names reaches a command; everything is bytes, ready to be handed to the guard.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from flowstone.dispatchers.process.failures import CannotStart
from flowstone.errors import FlowstoneError
from flowstone.plan.units import EnvBinding, EnvironmentRule, EnvRef, LiteralEnv, PassEnv
from flowstone.ports.dispatcher import Workspace
from flowstone.run.outcome import Reason

Context = tuple[tuple[str, str], ...]
EnvValues = Callable[[str], Mapping[str, str | None]]
"""The variables of an env asset by its ref, None where a secret is missing; may raise FlowstoneError."""


class Environments:
    """Builds environments for one workspace; the part that all commands share is made once."""

    def __init__(self, workspace: Workspace, host: Mapping[str, str], env_values: EnvValues) -> None:
        self._workspace = workspace
        self._host = host
        self._env_values = env_values
        self._shared: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[bytes, bytes]] = {}

    def build(
        self, rule: EnvironmentRule, bindings: tuple[EnvBinding, ...], context: Context
    ) -> tuple[dict[bytes, bytes], tuple[str, ...]]:
        """The environment, and the values in it that are secret.

        Raises CannotStart: exec_context_too_large, dispatch_error for an env asset that cannot be
        read or has other keys than were frozen, spawn_failed for what no environment can hold.
        """
        variables, secrets = self._bound(bindings)
        passed = tuple(binding.name for binding in bindings if isinstance(binding, PassEnv))
        environment = self._base(rule.base, passed).copy()
        for name, value in variables:
            environment[_name(name)] = _value(name, value)
        if rule.shim is not None and self._workspace.shim_folder is not None:
            folder = _encode(self._workspace.shim_folder)
            environment[b"PATH"] = folder + b":" + environment.get(b"PATH", os.defpath.encode())
        if context:
            environment.update(_context(rule, context))
        return environment, secrets

    def secrets(self, bindings: tuple[EnvBinding, ...]) -> tuple[str, ...]:
        """The secret values that the bindings bring, read anew. Raises CannotStart as `build` does."""
        return self._bound(bindings)[1]

    def variables(self, bindings: tuple[EnvBinding, ...]) -> tuple[tuple[str, str], ...]:
        """The variables that the bindings bring, secret or not, read anew. Raises CannotStart as `build` does."""
        return tuple(self._bound(bindings)[0])

    def _base(self, names: tuple[str, ...], passed: tuple[str, ...]) -> dict[bytes, bytes]:
        shared = self._shared.get((names, passed))
        if shared is None:
            pairs = [(n, self._host[n]) for n in names if n in self._host]
            pairs += self._workspace.provenance
            pairs += [(n, self._host[n]) for n in passed if n in self._host]
            shared = {_name(name): _value(name, value) for name, value in pairs}
            self._shared[names, passed] = shared
        return shared

    def _bound(self, bindings: tuple[EnvBinding, ...]) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        variables: list[tuple[str, str]] = []
        secrets: list[str] = []
        for binding in bindings:
            match binding:
                case LiteralEnv():
                    value = str(binding.value)
                    variables.append((binding.name, value))
                    if binding.secret:
                        secrets.append(value)
                case EnvRef():
                    values = self._asset(binding)
                    variables += values.items()
                    secrets += values.values()
                case PassEnv():
                    pass
        return variables, tuple(secrets)

    def _asset(self, binding: EnvRef) -> Mapping[str, str]:
        try:
            values = self._env_values(binding.ref)
        except FlowstoneError as error:
            text = f"{error.message} ({error.hint})" if error.hint else error.message
            raise CannotStart(Reason.DISPATCH_ERROR, text, of_step=True) from error
        frozen = bool(binding.owner or binding.keys)
        fresh, gone = sorted(set(values) - set(binding.keys)), sorted(set(binding.keys) - set(values))
        if frozen and (fresh or gone):
            changes = ", ".join([*(f"{name} is new" for name in fresh), *(f"{name} is gone" for name in gone)])
            text = f'"{binding.ref}" has other keys than when the run was started ({changes}): start a new run'
            raise CannotStart(Reason.DISPATCH_ERROR, text, of_step=True)
        return {name: value for name, value in values.items() if value is not None}


def _context(rule: EnvironmentRule, context: Context) -> dict[bytes, bytes]:
    """The context variables, refused before anything is spawned when the system would refuse them."""
    encoded = {_name(name): _value(name, value) for name, value in context}
    for name, value in encoded.items():
        if len(value) > rule.limit_one:
            raise _too_large(f"{name.decode()} is {len(value)} bytes", rule.limit_one, _WHY_ONE)
    total = sum(len(name) + 1 + len(value) for name, value in encoded.items())
    if total > rule.limit_all:
        largest = max(encoded, key=lambda name: len(encoded[name]))
        what = (
            f"the context variables are {total} bytes together, {len(encoded[largest])} of them in {largest.decode()}"
        )
        raise _too_large(what, rule.limit_all, _WHY_ALL)
    return encoded


_WHY_ONE = (
    "the bound for one variable; Linux takes at most 131072 bytes (MAX_ARG_STRLEN, 32 pages) for one "
    "string of an environment, and a quarter of that is left for its name and the kernel's own use"
)
_WHY_ALL = (
    "the bound for all of them; macOS takes at most 262144 bytes (ARG_MAX) for arguments and environment "
    "together, and half of that is left for everything else"
)


def _too_large(what: str, limit: int, why: str) -> CannotStart:
    hint = "let the step that makes the data write a file and hand on its path"
    return CannotStart(Reason.EXEC_CONTEXT_TOO_LARGE, f"{what}, over the limit of {limit} bytes ({why}): {hint}")


def _name(name: str) -> bytes:
    if not name or "=" in name or "\0" in name:
        raise CannotStart(Reason.SPAWN_FAILED, f"{name!r} cannot be the name of an environment variable")
    return _encode(name)


def _value(name: str, value: str) -> bytes:
    if "\0" in value:
        text = f"the environment variable {name} holds a NUL character, which no environment can pass on"
        raise CannotStart(Reason.SPAWN_FAILED, text)
    return _encode(value)


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        text = "an environment variable holds half of a character (a lone surrogate)"
        raise CannotStart(Reason.SPAWN_FAILED, text) from None

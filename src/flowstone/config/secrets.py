"""References `secret://…` → the values that they name: in files, the environment or the keyring."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote

from flowstone.errors import InputError
from flowstone.ports.secrets import SCHEME

LONGEST_BYTES = 64 * 1024
"""Of a file that holds a secret."""


class HostSecrets:
    """The Secrets port for one folder and one environment. Values are kept for later references.

    `secret://file/<path>` is a path from `cwd` (`secret://file//run/token` an absolute one), without
    the line feed at its end; `secret://env/<NAME>` a variable; `secret://keyring/<service>/<user>` a
    password of the system's keyring. A `%2F` in a name stands for a slash in it.
    """

    def __init__(self, cwd: str, env: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._env = env
        self._known: dict[str, str] = {}

    def resolve(self, reference: str) -> str:
        if reference not in self._known:
            value = self._look_up(reference)
            if not value.strip():
                raise InputError(f"{reference}: the secret is empty")
            self._known[reference] = value
        return self._known[reference]

    def _look_up(self, reference: str) -> str:
        store, _, name = reference.removeprefix(SCHEME).partition("/")
        match store:
            case "file" if name:
                return self._file(reference, unquote(name))
            case "env" if name:
                return self._variable(reference, unquote(name))
            case "keyring" if name:
                return _password(reference, name)
        raise InputError(
            f"{reference}: no such secret reference; write secret://file/<path>, secret://env/<NAME> or "
            "secret://keyring/<service>/<user>"
        )

    def _file(self, reference: str, name: str) -> str:
        path = os.path.join(self._cwd, os.path.expanduser(name))
        try:
            with open(path, "rb") as file:
                data = file.read(LONGEST_BYTES + 1)
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{reference}: the file is no UTF-8 text") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"{reference}: {path} cannot be read: {reason}") from None
        if len(data) > LONGEST_BYTES:
            raise InputError(f"{reference}: {path} is larger than {LONGEST_BYTES >> 10} KiB, too large for a secret")
        return text.removesuffix("\n").removesuffix("\r")

    def _variable(self, reference: str, name: str) -> str:
        if name not in self._env:
            raise InputError(f"{reference}: the environment has no variable {name}")
        return self._env[name]


def _password(reference: str, name: str) -> str:
    service, _, user = (unquote(part) for part in name.partition("/"))
    if not service or not user:
        raise InputError(f"{reference}: write secret://keyring/<service>/<user>")
    try:
        import keyring
    except ImportError:
        raise InputError(
            f"{reference}: reading the keyring needs the Python package keyring, which is not installed "
            "(it comes with flowstone[keyring])"
        ) from None
    try:
        value = keyring.get_password(service, user)
    except Exception as error:  # each backend has errors of its own
        raise InputError(f"{reference}: the keyring cannot be read: {error}") from None
    if value is None:
        raise InputError(f'{reference}: the keyring has no password of "{user}" for "{service}"')
    return str(value)

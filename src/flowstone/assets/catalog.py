"""The catalog of the asset bundles on this machine: implements `ports.catalog.Catalog`.

Freezing asks it for files and names; the values of env assets and secrets are read when a unit is
dispatched.
"""

from __future__ import annotations

import os
import re

from flowstone.assets.bundles import Bundle, Found, canonical_ref, contained, list_assets, read_asset, resolve
from flowstone.assets.dangerous import dangerous
from flowstone.assets.dotenv import parse_dotenv
from flowstone.assets.refs import Ref, parse_ref
from flowstone.errors import InputError, NotFound, SourceError
from flowstone.ports.catalog import Asset, EnvNames

ENV_BYTES = 1024 * 1024
_SECRET = re.compile(r"\$\{secret:([A-Za-z0-9_.][A-Za-z0-9_./-]*)\}")


class FileCatalog:
    """Looks assets up in bundles, in their order; keeps nothing, so a change is seen at once."""

    def __init__(self, bundles: tuple[Bundle, ...]) -> None:
        self.bundles = bundles

    def find(self, ref: str) -> Asset:
        found = self._locate(parse_ref(ref), ref)
        return self._asset(found)

    def env_names(self, ref: str) -> EnvNames:
        found = self._env(ref)
        values = self._trusted(found)
        secrets = {name for value in values.values() for name in _SECRET.findall(value)}
        return EnvNames(
            ref=canonical_ref(found, self.bundles),
            keys=tuple(sorted(values)),
            secret_names=tuple(sorted(secrets)),
            owner=found.bundle.name,
            dangerous=dangerous(values),
        )

    def env_values(self, ref: str) -> dict[str, str | None]:
        found = self._env(ref)
        return {name: self._filled(value, found) for name, value in self._trusted(found).items()}

    def ref_of(self, path: str) -> str | None:
        """The canonical ref of a file by its path; None when it lies in no bundle's type folders."""
        real = os.path.realpath(path)
        for bundle in self.bundles:
            root = os.path.realpath(bundle.root)
            kind, _, name = os.path.relpath(real, root).partition(os.sep)
            if contained(root, real) and name:
                found = Found(bundle, kind, os.path.join(bundle.root, kind, name))
                return canonical_ref(found, self.bundles)
        return None

    def _asset(self, found: Found) -> Asset:
        return Asset(
            ref=canonical_ref(found, self.bundles),
            path=os.path.abspath(found.path),
            data=read_asset(found),
            bundle=found.bundle.name,
        )

    def _locate(self, ref: Ref, text: str) -> Found:
        found = resolve(self.bundles, ref)
        if found is None:
            raise _missing(ref, text, self.bundles)
        return found

    def _env(self, text: str) -> Found:
        try:
            ref = parse_ref(text)
        except InputError as error:
            if error.code == "PATH_ESCAPE_VIOLATION":
                raise
            ref = Ref("", "")
        if ref.type != "env":
            raise InputError(f"Expected an env ref (env/<name>); got {text!r}.")
        return self._locate(ref, text)

    def _trusted(self, found: Found) -> dict[str, str]:
        """The variables of an env asset; one of another bundle must not make programs run other code."""
        values = _parsed(found)
        refused = dangerous(values) if found.bundle != self.bundles[0] else ()
        if refused:
            raise InputError(
                f"{canonical_ref(found, self.bundles)} sets {', '.join(refused)}, which makes programs run other code:"
                f" that is allowed in your own bundle {self.bundles[0].name} only.",
                code="DANGEROUS_ENV_KEY",
                hint=f"If you trust it, copy the file into {os.path.join(self.bundles[0].root, 'env')}.",
            )
        return values

    def _filled(self, value: str, env: Found) -> str | None:
        """The value with its secrets; None when one of them is missing."""
        contents: dict[str, str] = {}
        for name in _SECRET.findall(value):
            secret = self._secret(name, env.bundle)
            if secret is None:
                return None
            contents[name] = secret
        return _SECRET.sub(lambda match: contents[match[1]], value)

    def _secret(self, name: str, own: Bundle) -> str | None:
        ordered = (own, *(bundle for bundle in self.bundles if bundle != own))
        found = resolve(ordered, parse_ref(f"secrets/{name}"))
        if found is None:
            return None
        try:
            text = read_asset(found).decode("utf-8")
        except UnicodeDecodeError:
            raise SourceError(f"{found.path}: a secret must be UTF-8 text") from None
        if "\0" in text:
            raise SourceError(f"{found.path}: a secret must not hold a NUL character")
        return text


def _parsed(found: Found) -> dict[str, str]:
    return parse_dotenv(read_asset(found, ENV_BYTES), found.path)


def _missing(ref: Ref, text: str, bundles: tuple[Bundle, ...]) -> NotFound:
    if ref.bundle is not None and all(bundle.name != ref.bundle for bundle in bundles):
        known = ", ".join(bundle.name for bundle in bundles)
        hint = f'There is no bundle "{ref.bundle}"; configured: {known}.'
    else:
        hint = _near(ref, bundles)
    match ref.type:
        case "workflows":
            return NotFound(f"Workflow not found for ref: {text}", hint=hint)
        case "env":
            return NotFound(f"Env not found: {text}", hint=hint)
        case _:
            return NotFound(f"Workflow source target {text} was not found.", hint=hint)


def _near(ref: Ref, bundles: tuple[Bundle, ...]) -> str:
    import difflib

    folders = " or ".join(os.path.join(bundle.root, ref.type) for bundle in bundles)
    names = [found.relative.replace(os.sep, "/") for found in list_assets(bundles, ref.type)]
    short = {name.rpartition(".")[0] or name: name for name in names}
    near = difflib.get_close_matches(ref.name, short, 3, 0.6)
    if near:
        return f"Did you mean {' or '.join(f'{ref.type}/{name}' for name in near)}?"
    return f"Looked for it in {folders}."

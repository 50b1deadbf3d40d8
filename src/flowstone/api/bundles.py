"""Bundles, the folders of assets: what there are, and making a new one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flowstone.errors import InputError, UsageError

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone
    from flowstone.values import Json

FOLDERS = ("workflows", "commands", "scripts", "agents", "tasks", "env")
"""What a new bundle is made with."""


def list_bundles(flow: Flowstone) -> list[dict[str, Any]]:
    """Every bundle in the order in which refs are looked up, with the number of its assets by folder."""
    from flowstone.assets.bundles import list_assets

    rows = []
    settings = flow.wiring.settings
    for bundle in settings.bundles:
        counts = {kind: sum(1 for _ in list_assets((bundle,), kind)) for kind in FOLDERS}
        rows.append(
            {
                "name": bundle.name,
                "path": os.path.abspath(bundle.root),
                "default": bundle == settings.bundle,
                "origin": bundle.origin,
                "exists": os.path.isdir(bundle.root),
                "assets": {kind: count for kind, count in counts.items() if count},
            }
        )
    return rows


def create_bundle(
    flow: Flowstone, name: str, path: str | None = None, *, project: bool = False, default: bool = False
) -> dict[str, Any]:
    """Make a bundle's folders and name it in the configuration: the user's, or that of the project.

    `path` is `name` in the working folder unless given; what is there already stays. UsageError for a
    name that is taken, InputError for one that no ref could begin with.
    """
    from flowstone.assets.refs import is_bundle_name

    if not is_bundle_name(name):
        raise InputError(f'"{name}" is no bundle name: write letters, digits, dashes and underscores.')
    if project and default:
        raise UsageError("A bundle of a project cannot be the default one.", hint="Leave --default or --project out.")
    wiring = flow.wiring
    if any(bundle.name == name for bundle in wiring.settings.bundles):
        message = f'Bundle "{name}" already exists.'
        raise UsageError(message, code="RESOURCE_ALREADY_EXISTS", hint="`akm bundle list` tells where it lies.")
    root = os.path.normpath(os.path.join(wiring.cwd, path or name))
    file = _in_project(wiring.cwd, wiring.scope.path, name, root) if project else wiring.paths.config_file
    _make(root)
    if not project:
        _in_configuration(flow, name, root, default)
    return {
        "name": name,
        "path": root,
        "config": file,
        "default": default,
        "origin": "project" if project else "config",
    }


def _in_configuration(flow: Flowstone, name: str, root: str, default: bool) -> None:
    """Name a bundle in the user's configuration. One that was the default by itself stays it, by name."""
    from flowstone.config.file import CONFIG_VERSION, update_config

    before = flow.wiring.settings.bundle
    kept = before if before.origin == "default" and os.path.isdir(before.root) else None

    def change(document: dict[str, Json]) -> dict[str, Json]:
        entries: dict[str, Json] = dict(document.get("bundles") or {})
        changed = dict(document)
        if kept is not None and not entries:
            entries[kept.name] = {"path": kept.root}
            changed["defaultBundle"] = kept.name
        entries[name] = {"path": root}
        changed["bundles"] = entries
        if default or "defaultBundle" not in changed:
            changed["defaultBundle"] = name if default or len(entries) == 1 else next(iter(entries))
        changed.setdefault("configVersion", CONFIG_VERSION)
        return changed

    update_config(flow.wiring.paths.config_file, change)


def _in_project(cwd: str, folder: str, name: str, root: str) -> str:
    """Name a bundle in the configuration of the project; the file."""
    from flowstone.assets.bundles import contained
    from flowstone.config.file import update_config
    from flowstone.config.project import FILE, find_project

    found = find_project(cwd)
    folder = found.folder if found is not None else folder
    if not contained(folder, root):
        raise InputError(
            f"{root} lies outside the project {folder}.",
            code="PATH_ESCAPE_VIOLATION",
            hint="A bundle of a project lies inside it; without --project it may lie anywhere.",
        )
    relative = os.path.relpath(os.path.realpath(root), os.path.realpath(folder))

    def change(document: dict[str, Json]) -> dict[str, Json]:
        return {**document, "bundles": {**(document.get("bundles") or {}), name: {"path": relative}}}

    file = os.path.join(folder, FILE)
    update_config(file, change)
    return file


def _make(root: str) -> None:
    try:
        for kind in FOLDERS:
            os.makedirs(os.path.join(root, kind), mode=0o700 if kind == "env" else 0o777, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{root} cannot be made: {error.strerror}") from None

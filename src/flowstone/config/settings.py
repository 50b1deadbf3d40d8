"""Settings: the configuration file and the surroundings, as the values that everything else gets."""

from __future__ import annotations

import os

import msgspec

from flowstone.assets.bundles import Bundle, bundle_name
from flowstone.config.file import check_document, read_config
from flowstone.config.paths import Paths, expand
from flowstone.config.project import find_project
from flowstone.config.rules import OCCASIONS, int_of
from flowstone.plan.bounds import CONCURRENCY
from flowstone.ports.catalog import EngineConfig
from flowstone.values import Json

DEFAULT_MAP_WIDTH = 4
KEY_NAMES = ("AKM_ENGINE_{}_API_KEY", "AKM_LLM_API_KEY")
AGENT_VARIABLES = ("HOME", "PATH", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "AKM_EVENT_SOURCE")
"""Where the key of an engine is looked up that names no variable itself (akm facts 22)."""


class Notify(msgspec.Struct, frozen=True):
    """A command to be told how runs end, and on which occasions."""

    command: tuple[str, ...]
    on: tuple[str, ...]


class Settings(msgspec.Struct, frozen=True):
    """All that a verb may read of the configuration.

    `bundles` stand in order of priority, the default one first. `host_concurrency` is the cap over
    all runs of this machine; the numbers in `engines` are final (1 to 64).
    """

    paths: Paths
    engines: EngineConfig
    host_concurrency: int
    bundles: tuple[Bundle, ...]
    document: Json = None
    limits: dict[str, tuple[int, tuple[str, ...]]] = {}
    """Named limits across runs: how many at a time, and the patterns of their workflows."""
    notify: Notify | None = None

    @property
    def bundle(self) -> Bundle:
        """The bundle that new assets go to."""
        return self.bundles[0]


def load_settings(paths: Paths, cores: int, cwd: str | None = None) -> Settings:
    """Read and check the configuration; ConfigError names every key that is wrong.

    `cwd` lies in the project whose bundles count as well.
    """
    document = read_config(paths.config_file)
    check_document(paths.config_file, document)
    workflow = document.get("workflow", {})
    host = _clamped(workflow.get("hostConcurrency"), min(16, max(1, cores - 2)))
    defaults = document.get("defaults", {})
    return Settings(
        paths=paths,
        engines=EngineConfig(
            engines=document.get("engines"),
            default_engine=defaults.get("engine"),
            default_llm_engine=defaults.get("llmEngine"),
            setter="akm config set",
            key_names=KEY_NAMES,
            schema_name="akm_response",
            agent_variables=AGENT_VARIABLES,
            context="AKM_",
            allowed_tools=tuple(document.get("execution", {}).get("allowedTools", ())),
            judge_engine=workflow.get("judgeEngine"),
            map_width=_clamped(workflow.get("defaultMapConcurrency"), DEFAULT_MAP_WIDTH),
            max_concurrency=_clamped(workflow.get("maxConcurrency"), host),
            host_concurrency=host,
        ),
        host_concurrency=host,
        bundles=bundles_of(paths, document, cwd),
        document=document,
        limits={
            name: (int(limit["max"]), tuple(limit["workflows"])) for name, limit in workflow.get("limits", {}).items()
        },
        notify=_notify(workflow.get("notify")),
    )


def _notify(entry: Json) -> Notify | None:
    return None if entry is None else Notify(tuple(entry["command"]), tuple(entry.get("on", OCCASIONS)))


def bundles_of(paths: Paths, document: dict[str, Json], cwd: str | None = None) -> tuple[Bundle, ...]:
    """The asset roots by priority: AKM_BUNDLE_DIR or the default bundle, the others in order, the project's.

    Bundles without a path (not installed on this machine) are left out. There is always one. A name
    that the user has given goes before the same one of a project.
    """
    configured = [
        Bundle(name, root)
        for name, entry in (document.get("bundles") or {}).items()
        if (root := _root(paths, entry)) is not None
    ]
    first = _first(paths, configured, document.get("defaultBundle"))
    own = (first, *(bundle for bundle in configured if bundle.name != first.name))
    project = None if cwd is None else find_project(cwd)
    known = {bundle.name for bundle in own}
    return (*own, *(bundle for bundle in (project.bundles if project else ()) if bundle.name not in known))


def _first(paths: Paths, configured: list[Bundle], default: str | None) -> Bundle:
    if paths.bundle is not None:
        real = os.path.realpath(paths.bundle)
        for bundle in configured:
            if os.path.realpath(bundle.root) == real:
                return bundle
        return Bundle(bundle_name(paths.bundle), paths.bundle, "environment")
    for bundle in configured:
        if default is None or bundle.name == default:
            return bundle
    return Bundle(bundle_name(paths.default_bundle), paths.default_bundle, "default")


def _root(paths: Paths, entry: dict[str, Json]) -> str | None:
    path = entry.get("path")
    if path is None:
        return None
    root = os.path.join(paths.config, expand(path, paths.home))
    main = (entry.get("components") or {}).get("main")
    inner = main.get("root", ".") if isinstance(main, dict) else "."
    return os.path.normpath(os.path.join(root, inner))


def _clamped(value: Json, default: int) -> int:
    number = default if value is None else int_of(value)
    return min(max(number or 1, 1), CONCURRENCY)

"""Which schedules run on this machine: `scheduler.enabled` of the configuration file, as refs."""

from __future__ import annotations

from flowstone.config.file import CONFIG_VERSION, check_document, read_config, update_config
from flowstone.ports.activation import Change
from flowstone.values import Json


class ConfigActivation:
    """The Activation port over one configuration file, which is read anew each time."""

    def __init__(self, path: str) -> None:
        self._path = path

    def enabled(self) -> tuple[str, ...]:
        document = read_config(self._path)
        check_document(self._path, document)
        return _enabled(document)

    def change(self, change: Change) -> tuple[str, ...]:
        def changed(document: dict[str, Json]) -> dict[str, Json]:
            check_document(self._path, document)
            wanted = change(_enabled(document))
            scheduler = {**(document.get("scheduler") or {}), "enabled": list(dict.fromkeys(wanted))}
            return {"configVersion": CONFIG_VERSION, **document, "scheduler": scheduler}

        before = self.enabled()
        if change(before) == before:
            return before
        return _enabled(update_config(self._path, changed))


def _enabled(document: dict[str, Json]) -> tuple[str, ...]:
    return tuple((document.get("scheduler") or {}).get("enabled") or ())

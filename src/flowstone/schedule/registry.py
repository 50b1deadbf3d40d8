"""The scheduler of this machine: the one that is configured, else the one that the system has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from flowstone.ports.activation import Missed, Timetable
from flowstone.schedule.programs import Run, runner

BACKENDS = ("crontab", "systemd", "launchd", "windows")
DEFAULTS = {"darwin": "launchd", "win32": "windows"}


class Host(msgspec.Struct, frozen=True):
    """What choosing a scheduler needs to know. `platform` is Python's name of the system."""

    env: Mapping[str, str]
    home: str
    platform: str
    owner: str
    missed: Missed = Missed.ONCE
    backend: str | None = None


def timetable_of(host: Host, run: Run | None = None) -> Timetable:
    """The Timetable of a host. `run` starts its programs, by default really."""
    return _MAKERS[host.backend or DEFAULTS.get(host.platform, "crontab")](host, run or runner(host.env))


def _crontab(host: Host, run: Run) -> Timetable:
    from flowstone.schedule.crontab import Crontab

    return Crontab(host.owner, run, _which(host))


def _systemd(host: Host, run: Run) -> Timetable:
    from flowstone.schedule.systemd import SystemdTimers

    config = host.env.get("XDG_CONFIG_HOME") or os.path.join(host.home, ".config")
    return SystemdTimers(host.owner, os.path.join(config, "systemd", "user"), run, _which(host), host.missed)


def _launchd(host: Host, run: Run) -> Timetable:
    from flowstone.schedule.launchd import LaunchAgents

    folder = os.path.join(host.home, "Library", "LaunchAgents")
    return LaunchAgents(host.owner, folder, f"gui/{os.getuid()}", run, _which(host))


def _windows(host: Host, run: Run) -> Timetable:
    from flowstone.schedule.windows import WindowsTasks

    return WindowsTasks(host.owner, run, _which(host), _temporary)


def _which(host: Host) -> Callable[[str], str | None]:
    from shutil import which

    return partial(which, path=host.env.get("PATH"))


def _temporary(data: bytes) -> str:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".xml", delete=False) as file:
        file.write(data)
    return file.name


_MAKERS: dict[str, Callable[[Host, Run], Timetable]] = {
    "crontab": _crontab,
    "systemd": _systemd,
    "launchd": _launchd,
    "windows": _windows,
}

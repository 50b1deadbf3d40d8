"""The time zone of this machine, and zones by their names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from flowstone.errors import InputError

_DATABASE = "zoneinfo/"
_LOCAL = "/etc/localtime"


def zone_of(name: str | None, env: Mapping[str, str]) -> tuple[str, tzinfo]:
    """A zone and its name: the one that is asked for, else that of `TZ`, else the machine's."""
    if name is not None:
        return name, _named(name)
    own = env.get("TZ", "").removeprefix(":")
    if own:
        try:
            return own, _named(own)
        except InputError:
            pass  # a rule such as EST5EDT4, which the system knows and the database does not
    link = os.path.realpath(_LOCAL)
    if _DATABASE in link:
        found = link.rpartition(_DATABASE)[2]
        return found, _named(found)
    local = datetime.now().astimezone().tzinfo
    return ("UTC" if local is None else str(local)), local or UTC


def moment_of(text: str, zone: tzinfo) -> datetime:
    """An ISO 8601 time; without an offset it is one of the zone."""
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise InputError(f'"{text}" is no ISO time: write for instance 2026-03-08T12:00:00Z.') from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def _named(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InputError(
            f'there is no time zone "{name}"', hint="Write a name such as Europe/Berlin or America/New_York, or UTC."
        ) from None

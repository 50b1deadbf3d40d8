"""Moments: milliseconds since the epoch as the ISO 8601 texts that every view shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(moment: int | None) -> str | None:
    """A moment in UTC with milliseconds and Z; None stays None."""
    if moment is None:
        return None
    return (_EPOCH + timedelta(milliseconds=moment)).isoformat(timespec="milliseconds")[:-6] + "Z"


def moment_of(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 text (without a zone: UTC) or of a number of them.

    ValueError for any other text.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    return (read - _EPOCH) // timedelta(milliseconds=1)

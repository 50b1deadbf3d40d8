"""Unit ids in progress lines, and unit counts of a run that is only read."""

from __future__ import annotations

import pytest

from flowstone.views.text import short_unit


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("build:solo", "build:solo"),
        (f"check.unit:{'0123456789abcdef' * 4}", "check.unit:0123456789ab"),
        (f"check.unit:{'0123456789abcdef' * 4}#2", "check.unit:0123456789ab#2"),
    ],
)
def test_a_long_digest_is_shortened(unit: str, shown: str) -> None:
    assert short_unit(unit) == shown

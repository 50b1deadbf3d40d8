"""Times as texts: UTC, milliseconds, Z."""

import pytest

from flowstone.views.moments import iso, moment_of


def test_milliseconds_and_z():
    assert iso(0) == "1970-01-01T00:00:00.000Z"
    assert iso(1_767_225_600_007) == "2026-01-01T00:00:00.007Z"
    assert iso(None) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01", 1_767_225_600_000),
        ("2026-01-01T01:00:00.250+01:00", 1_767_225_600_250),
        ("1767225600000", 1_767_225_600_000),
    ],
)
def test_read(text, moment):
    assert moment_of(text) == moment


def test_no_time():
    with pytest.raises(ValueError, match="soon"):
        moment_of("soon")

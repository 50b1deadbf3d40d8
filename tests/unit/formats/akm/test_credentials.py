"""The credential scan: names, shapes, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from flowstone.formats.akm_common.credentials import BY_NAME, BY_SHAPE, flagged_values, scan


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"api_token": "x"}, [("api_token", BY_NAME)]),
        ({"a": {"Client_Secret": 1}}, [("a.Client_Secret", BY_NAME)]),
        ({"a": ["ghp_a1B2a1B2a1B2a1B2a1B2"]}, [("a[0]", BY_SHAPE)]),
        ({"a": " sk-aaaaaaaaaaaaaaaaaaaa "}, [("a", BY_SHAPE)]),
        ({"a": "Abcdefgh1jklmnopqrstuvwx"}, [("a", BY_SHAPE)]),
        ({"a": "a" * 32}, [("a", BY_SHAPE)]),
        ({"a": "an ordinary sentence of some length"}, []),
        ({"a": "sk-short", "b": 12345678901234567890, "c": None}, []),
        ({"a": "abcdefghijklmnopqrstuvwx"}, []),
    ],
)
def test_findings(params: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert [(finding.path, finding.why) for finding in scan(params)] == found


def test_values_to_redact() -> None:
    params = {"token": {"a": "one", "b": [2]}, "x": "AKIA0000000000000000", "y": "plain"}
    assert flagged_values(params) == ["one", "2", "AKIA0000000000000000"]

"""Outcomes and the bound above which a value travels by digest."""

from __future__ import annotations

import pytest

from flowstone.plan.bounds import BLOB_BYTES
from flowstone.run.outcome import RETRYABLE, Outcome, Reason, failed, is_large


@pytest.mark.parametrize(
    ("value", "large"),
    [
        (None, False),
        ("x" * (BLOB_BYTES - 2), False),
        ("x" * (BLOB_BYTES - 1), True),
        ("ä" * (BLOB_BYTES // 2), True),
        ("\x01" * (BLOB_BYTES // 6 + 1), True),
        (["x" * (BLOB_BYTES - 4)], False),
        (["x" * (BLOB_BYTES - 3)], True),
        ({"k": "x" * BLOB_BYTES}, True),
        (2**10_000, False),
    ],
)
def test_large_is_more_than_a_mebibyte_of_canonical_json(value, large):
    assert is_large(value) is large


def test_the_reasons_that_authors_may_list_are_the_documented_ones():
    assert {reason.value for reason in RETRYABLE} == {
        "timeout", "spawn_failed", "non_zero_exit", "parse_error", "cooldown", "llm_rate_limit", "llm_content_filter",
        "llm_invalid_json", "content_policy_reject", "unsupported_type", "no_change", "aborted",
    }  # fmt: skip


def test_a_failure_has_its_error_as_diagnostic():
    outcome = failed(Reason.TIMEOUT, "late", ran=False)
    assert (outcome.ok, outcome.error, outcome.diagnostic, outcome.ran) == (False, "late", "late", False)
    assert Outcome().ok

"""A few of the wide runs that `script/soak` makes by the hundred."""

from __future__ import annotations

from tests.crash.width import rounds


def test_wide_runs_never_lose_a_step() -> None:
    figures, mistakes = rounds(runs=2, steps=200, parallel=16)
    assert mistakes == []
    assert figures["widest"] == 16

"""What a model was told and answered is shown by `status --units` and `why`."""

from __future__ import annotations

from flowstone.plan.model import Unit
from flowstone.plan.units import LlmSpec
from flowstone.run.outcome import Exchange
from flowstone.testing.plans import solo, spine
from flowstone.testing.scripted_dispatcher import Script
from flowstone.views.units import unit_rows
from flowstone.views.why import why, why_lines
from tests.driving import driven, ok

UNIT = Unit(LlmSpec("Do.", "e", "http://127.0.0.1/chat/completions", "m"))


def test_the_exchange_is_shown():
    told = (Exchange("Do.", "first"), Exchange("Do. Better.", "second"))
    bench = driven(spine(solo("a", unit=UNIT)), Script().on("a", ok("second", exchange=told, tokens=30)))
    row = unit_rows(bench.state, str, 0)[0]
    assert (row["engine"], row["runtimeKind"], row["tokens"]) == ("e", "llm", 30)
    assert row["exchange"] == [
        {"request": "Do.", "answer": "first"},
        {"request": "Do. Better.", "answer": "second"},
    ]
    lines = why_lines(why(bench.state, [r.event for r in bench.store.read("run-00000001")], "a"))
    assert "  asked: Do. Better." in lines
    assert "  answered: second" in lines

"""Envelopes hold words of enums and tuples; YAML shows them as texts and lists."""

from __future__ import annotations

from flowstone.cli.render.formats import as_yaml
from flowstone.run.events import RunStatus


def test_enums_and_tuples_are_plain():
    assert as_yaml({"status": RunStatus.ACTIVE, "steps": ("a",)}) == "status: active\nsteps:\n- a\n"

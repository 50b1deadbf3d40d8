"""A stored plan without the secrets that its texts hold."""

from __future__ import annotations

from flowstone.expr.model import Cel, Template
from flowstone.plan.codec import decode_plan, encode_plan
from flowstone.plan.model import Plan, Single, Step, Unit
from flowstone.plan.scrub import scrubbed
from flowstone.plan.units import ExecSpec, LiteralEnv


def test_texts_lose_the_secret_and_structure_stays() -> None:
    spec = ExecSpec(
        argv=("sh", "-c", "test hunter2-single = x", Template(("a ", Cel("'hunter2-single' + inputs.x")))),
        env=(LiteralEnv("single", "hunter2-single"),),
    )
    plan = Plan("orun", "single", (Step("single", Single(Unit(spec))),))
    clean = scrubbed(plan, lambda text: text.replace("hunter2-single", "***").replace("single", "***"))
    text = encode_plan(clean)
    assert "hunter2" not in text
    again = decode_plan(text)
    assert again.steps[0].id == "single"
    assert isinstance(again.steps[0].action, Single)

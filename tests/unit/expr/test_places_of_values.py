"""A value that cannot be had is named by its way through mappings and lists, and by its line."""

from __future__ import annotations

import re

import pytest

from flowstone.expr.model import Cel, Items, Literal, Record
from flowstone.expr.scope import Scope, evaluate_expression

SCOPE = Scope({}, {}, lambda name, reads: {})
BAD = Cel("inputs.nope", (), ("inputs",))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (Record((("url", BAD),), (7,), "with"), "with.url (line 7): no such key: nope"),
        (
            Record((("body", Record((("a", Items((Literal(1), BAD))),), (9,))),), (8,), "with"),
            "with.body.a[1] (line 9): no such key: nope",
        ),
        (
            Record((("body", Items((Record((("q", BAD),)),))),), (8,), "with"),
            "with.body[0].q (line 8): no such key: nope",
        ),
        (Record((("a", BAD),)), "a: no such key: nope"),
        (Items((BAD,)), "[0]: no such key: nope"),
        (BAD, "no such key: nope"),
    ],
)
def test_the_way_to_it(expression, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        evaluate_expression(expression, SCOPE)


def test_lines_are_no_part_of_what_is_meant():
    here, there = (Record((("a", Record((("b", BAD),), (line,))),), (line,), "with") for line in (7, 9))
    assert here == there
    assert hash(here) == hash(there)
    assert here != Record((("a", BAD),), (7,), "with")

"""What a workflow is for, takes, does and gives."""

from flowstone.expr.model import Literal
from flowstone.plan.model import Budget, Connection, Output, Param
from flowstone.testing.plans import dag, solo
from flowstone.views.synopsis import plan_lines, synopsis, synopsis_lines

PLAN = dag(
    solo("build"),
    title="Release",
    description="Ships it.\nTwice.",
    params=(
        Param("version", {"type": "string", "description": "What to ship"}, required=True),
        Param("level", type="integer", has_default=True, default=3),
        Param("env", type="string", values=("dev", "prod")),
        Param("token", type="string", secret=True, has_default=True, default="hunter2"),
    ),
    connections=(Connection("gh", "http.bearer"),),
    outputs=(Output("url", Literal("x")),),
    budget=Budget(max_units=10),
    width=2,
)


def test_lines():
    assert synopsis_lines(PLAN) == [
        "Release (1 step)",
        "  Ships it.",
        "  Twice.",
        "  build  command",
        "parameters (--set name=value)",
        "  version  string, required: What to ship",
        "  level    integer, default 3",
        '  env      string, one of "dev", "prod"',
        "  token    string, default hidden, secret",
        "connections (--connection name.field=value)",
        "  gh  http.bearer",
        "outputs: url",
    ]


def test_no_secret_default_is_told():
    assert "hunter2" not in str(synopsis(PLAN))


def test_a_plan_tells_its_bounds_and_hash():
    assert plan_lines(PLAN, "abc")[-3:] == ["budget: 10 units", "at most 2 units at a time", "plan abc"]

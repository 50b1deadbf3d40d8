"""Steps in layers, as lines and as a picture."""

from flowstone.expr.model import Cel
from flowstone.plan.model import Gate
from flowstone.testing.plans import dag, fan_out, route, solo, spine
from flowstone.views.graph import graph, graph_lines, graph_svg


def test_layers_follow_the_longest_path_whatever_the_order_in_the_file():
    plan = dag(solo("end", needs=("b", "a")), solo("a"), solo("b", needs=("a",)), solo("side"))
    laid = graph(plan)
    assert {node.step: node.layer for node in laid.nodes} == {"end": 2, "a": 0, "b": 1, "side": 0}
    assert (laid.layers, laid.height) == (3, 2)
    assert {(edge.source, edge.target) for edge in laid.edges} == {("b", "end"), ("a", "end"), ("a", "b")}


def test_routes_mark_the_edges_to_their_targets():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b"}, "c"), solo("b"), solo("c"))
    chosen = {(edge.source, edge.target) for edge in graph(plan).edges if edge.chosen}
    assert chosen == {("r", "b"), ("r", "c")}


def test_lines_tell_kind_needs_and_conditions():
    plan = dag(
        solo("build"),
        solo("test", needs=("build",), when=Cel("inputs.fast == false")),
        title="Release",
    )
    assert graph_lines(plan) == [
        "Release (2 steps)",
        "  build  command",
        "  test   command  ← build  (if inputs.fast == false)",
    ]


def test_lines_tell_maps_routes_and_gates():
    plan = spine(
        fan_out("check", "params.items"),
        route("r", "steps.check.output", {"yes": "ship"}),
        solo("ship", gate=Gate("good?")),
    )
    lines = graph_lines(plan)
    assert "  check  map of command  (over params.items)" in lines
    assert "  r      route           ← check  (steps.check.output: yes → ship)" in lines
    assert lines[-1] == "  ship   command         ← r  (gate)"


def test_the_picture_shows_status_and_escapes():
    plan = dag(solo("a"), solo("b", needs=("a",)))
    svg = graph_svg(plan, {"a": "failed", "b": "pending"}, lambda step: f"#s<{step}")
    assert "s-failed" in svg
    assert "s-pending" in svg
    assert 'href="#s&lt;a"' in svg
    assert svg.count("<path") == 1

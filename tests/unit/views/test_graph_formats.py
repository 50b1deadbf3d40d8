"""The graph of a workflow for other programs: well-formed, complete, and safe whatever the names."""

from __future__ import annotations

import shutil
import subprocess
from xml.etree import ElementTree

import msgspec
import pytest

from flowstone.expr.model import Literal, Reference
from flowstone.plan.model import Branch, Plan, Route, Single, Step, Unit
from flowstone.plan.units import ChildSpec, ExecSpec
from flowstone.views.graph_formats import GraphFormat, graph_text
from flowstone.views.nesting import family_lines

NASTY = 'a"]; <b>&\\'


def plan() -> Plan:
    command = Single(Unit(ExecSpec(("x",))))
    route = Route(Reference("params.x", "params", "x"), (Branch("1", "left"),), "right")
    steps = (
        Step(NASTY, command),
        Step("pick", route, needs=(NASTY,)),
        Step("left", command, needs=("pick",), selected_by=("pick",)),
        Step("right", command, needs=("pick",), selected_by=("pick",)),
    )
    return Plan("akm", NASTY, steps, title="Ship <it> & more")


def test_mermaid_numbers_its_nodes_and_spells_signs_as_entities() -> None:
    assert graph_text(plan(), GraphFormat.MERMAID) == (
        "flowchart LR\n"
        '  n0["a#34;#93;#59; #60;b#62;#38;#92;<br/><i>command</i>"]\n'
        '  n1["pick<br/><i>route</i>"]\n'
        '  n2["left<br/><i>command</i>"]\n'
        '  n3["right<br/><i>command</i>"]\n'
        "  n0 --> n1\n"
        "  n1 -.-> n2\n"
        "  n1 -.-> n3\n"
    )


def test_dot_quotes_names() -> None:
    text = graph_text(plan(), GraphFormat.DOT)
    assert text.startswith('digraph "a\\"]; <b>&\\\\" {\n')
    assert '  "pick" [label="pick\\nroute"];\n' in text
    assert '  "a\\"]; <b>&\\\\" -> "pick";\n' in text
    assert '  "pick" -> "left" [style=dashed];\n' in text


def test_dot_is_what_graphviz_reads() -> None:
    program = shutil.which("dot")
    if program is not None:
        text = graph_text(plan(), GraphFormat.DOT)
        subprocess.run([program, "-Tplain"], input=text, text=True, check=True, capture_output=True)


def test_svg_is_a_picture_of_its_own() -> None:
    root = ElementTree.fromstring(graph_text(plan(), GraphFormat.SVG))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [f"{NASTY}: command", "pick: route", "left: command", "right: command"]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 3
    assert root.find("{http://www.w3.org/2000/svg}style") is not None


def test_html_is_one_page_without_scripts_or_links() -> None:
    text = graph_text(plan(), GraphFormat.HTML)
    assert text.startswith("<!doctype html>")
    assert "<h1>Ship &lt;it&gt; &amp; more</h1>" in text
    assert "<svg" in text
    assert "4 steps" in text
    assert "<script" not in text
    assert "href" not in text


def nesting(levels: int = 2, ref: str = NASTY) -> Plan:
    """A plan whose step "go" nests the like, `levels` deep, and beside it nothing else."""
    if levels == 0:
        return Plan("orun", "leaf", (Step("work", Single(Unit(ExecSpec(("x",))))),))
    child = msgspec.to_builtins(nesting(levels - 1, ref))
    return Plan("orun", "outer", (Step("go", Single(Unit(ChildSpec(ref, Literal({}), child)))),))


def test_nested_workflows_are_groups_with_the_way_to_them() -> None:
    text = graph_text(nesting(ref="sub/kid.yaml"), GraphFormat.MERMAID)
    assert '  subgraph w0["go: sub/kid.yaml"]\n' in text
    assert '  subgraph w1["go/go: sub/kid.yaml"]\n    n2["work<br/><i>command</i>"]\n  end\n  n1 --o w1\n' in text
    text = graph_text(nesting(ref="sub/kid.yaml"), GraphFormat.DOT)
    assert '  subgraph cluster_1 {\n    label="go/go: sub/kid.yaml";\n    "go/go/work" [label="work' in text
    assert '  "go/go" -> "go/go/work" [style=dotted, arrowhead=odot];\n' in text
    assert text.count("{") == text.count("}")
    assert family_lines(nesting(1, "kid.yaml")) == [
        "outer (1 step)",
        "  go  workflow",
        "",
        "go: kid.yaml",
        "  leaf (1 step)",
        "    work  command",
    ]


ODD = [
    "a\x00b",
    "]]>",
    "<script>alert(1)</script>",
    "--><b>",
    "\ufffe\uffff",
    "</svg></style>",
    "\x1b[31m",
    "é\u202e漢",
]


@pytest.mark.parametrize("ref", [NASTY, *ODD])
def test_odd_names_of_nested_files_stay_text(ref: str) -> None:
    root = ElementTree.fromstring(graph_text(nesting(ref=ref), GraphFormat.SVG))
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 3
    page = graph_text(nesting(ref=ref), GraphFormat.HTML)
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("</style>") == 1
    for form in GraphFormat:
        graph_text(nesting(ref=ref), form).encode()


def test_a_deep_family_is_drawn_to_a_bound_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowstone.views.nesting.SHOWN", 3)
    for form in GraphFormat:
        assert "… and more" in graph_text(nesting(5), form)
    ElementTree.fromstring(graph_text(nesting(5), GraphFormat.SVG))
    assert family_lines(nesting(5))[-1].startswith("… and more")


@pytest.mark.parametrize("form", list(GraphFormat))
def test_a_plan_without_steps_is_drawn_too(form: GraphFormat) -> None:
    assert graph_text(Plan("akm", "empty", ()), form).endswith("\n")

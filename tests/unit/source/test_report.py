"""Diagnostics as text with carets, JSON and SARIF."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from flowstone.diagnostics import Diagnostic, Place, Severity
from flowstone.source.report import render_text, to_json, to_sarif

WRONG = Diagnostic("bad-x", "x is wrong", Place(2, 4), "write y")


def test_text_shows_the_line_a_caret_and_the_hint():
    assert render_text("a.md", "one\nab x\n", [WRONG]) == (
        "a.md:2:4: error: x is wrong [bad-x]\n  2 | ab x\n    |    ^\n  hint: write y\n"
    )


def test_nothing_is_rendered_as_nothing():
    assert render_text("a", "x", []) == ""


def test_a_warning_and_a_place_behind_the_end():
    found = Diagnostic("c", "m", Place(9, 9), severity=Severity.WARNING)
    assert render_text("a", "x\n", [found]) == "a:9:9: warning: m [c]\n"


def caret(text: str, column: int) -> tuple[str, int]:
    rows = render_text("p", text, [Diagnostic("c", "m", Place(1, column))]).split("\n")
    return rows[1].removeprefix("  1 | "), rows[2].index("^") - len("    | ")


def test_tabs_and_wide_characters_keep_the_caret_right():
    assert caret("\tx", 2) == ("    x", 4)
    assert caret("日本x", 3) == ("日本x", 4)
    assert caret("e\u0301x", 3) == ("e\u0301x", 1)


def test_long_lines_are_clipped_around_the_caret():
    line, at = caret("a" * 500 + "X" + "b" * 500, 501)
    assert line[at] == "X"
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) < 130


def test_control_characters_are_never_printed_raw():
    found = Diagnostic("c", "bad \x1b[2J\n\u202e", Place(1, 3), "see \x07")
    text = render_text("p\x1b", "a\x1b]0;x\x07\ud800", [found])
    assert not {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} - {"\n"}
    assert "bad \\x1b[2J\\x0a\\u202e" in text


def test_fifty_are_shown_and_one_line_counts_the_rest():
    text = render_text("p", "", [Diagnostic("c", f"m{n}", Place(7, 1)) for n in range(53)])
    assert "m49" in text
    assert "m50" not in text
    assert text.endswith("… and 3 more (53 in all)\n")


def test_colour_only_adds_escapes():
    painted = render_text("p", "one\nab x\n", [WRONG], colour=True)
    assert "\x1b[1;31m" in painted
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_text("p", "one\nab x\n", [WRONG])


def test_json_has_one_object_a_diagnostic():
    assert to_json("a.md", [WRONG]) == [
        {
            "path": "a.md",
            "line": 2,
            "column": 4,
            "severity": "error",
            "code": "bad-x",
            "message": "x is wrong",
            "hint": "write y",
        }
    ]


def test_sarif_names_rules_levels_and_places():
    log = to_sarif([("d ir/a.md", [WRONG]), ("/b", [Diagnostic("w", "m", severity=Severity.WARNING)])])
    assert json.loads(json.dumps(log)) == log
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["bad-x", "w"]
    first, second = run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("bad-x", 0, "error")
    assert first["message"] == {"text": "x is wrong (write y)"}
    location = first["locations"][0]["physicalLocation"]
    assert location == {
        "artifactLocation": {"uri": "d%20ir/a.md"},
        "region": {"startLine": 2, "startColumn": 4},
    }
    assert second["level"] == "warning"
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///b"


@given(st.text(max_size=300), st.integers(1, 10), st.integers(1, 400))
def test_any_source_and_place_renders(text, line, column):
    render_text("p", text, [Diagnostic("c", text, Place(line, column), text)])

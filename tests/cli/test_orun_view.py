"""`orun workflow view` in each of its formats."""

import pytest

FLOW = """apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: ship }
steps:
  - { name: build, run: [make] }
  - { name: wait-a-bit, action: sleep, with: { duration: 1s } }
  - { name: push, needs: [build, wait-a-bit], run: [make, push] }
"""


@pytest.fixture
def view(run, tmp_path):
    (tmp_path / "project" / "w.yaml").write_text(FLOW)
    return lambda *argv: run("orun", "workflow", "view", "w.yaml", *argv)


def test_text_is_what_is_printed_without_a_format(view):
    plain = view()
    assert plain.returncode == 0
    assert plain.stdout == (
        "workflow ship (3 steps)\n  build [run]\n  wait-a-bit [action]\n  push [run] ← build, wait-a-bit\n"
    )
    assert view("--format", "text").stdout == plain.stdout


@pytest.mark.parametrize(
    ("form", "beginning", "text"),
    [
        ("mermaid", "flowchart LR\n", "n0 --> n2\n"),
        ("dot", 'digraph "ship" {\n', '"wait-a-bit" -> "push";\n'),
        ("svg", "<svg xmlns=", "wait-a-bit: sleep"),
        ("html", "<!doctype html>", "<h1>ship</h1>"),
    ],
)
def test_other_formats_are_files_for_other_programs(view, form, beginning, text):
    ended = view("--format", form)
    assert ended.returncode == 0
    assert ended.stdout.startswith(beginning)
    assert text in ended.stdout


def test_another_format_is_refused(view):
    ended = view("--format", "png")
    assert ended.returncode != 0
    assert "svg" in ended.stderr

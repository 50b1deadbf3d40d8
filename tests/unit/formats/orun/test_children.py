"""Nested files at validate: existence, cycles by real path, invalid children, their inputs."""

from __future__ import annotations

from pathlib import Path

from flowstone.formats.registry import compile_source
from flowstone.source.file import read_source

HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: x }\n"


def nesting(ref: str, more: str = "") -> str:
    return f"{HEAD}steps:\n  - name: s\n    workflow: {ref}\n{more}"


def said(folder: Path, name: str = "w.yaml") -> list[str]:
    path = str(folder / name)
    found = compile_source(name, path, read_source(path, 1 << 20))
    return [diagnostic.message for diagnostic in found.diagnostics]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


LEAF = HEAD + "inputs: { who: { required: true }, n: {} }\nsteps: [{ name: c, run: [x] }]\n"


def test_a_missing_file(tmp_path):
    write(tmp_path, w=nesting("sub/nope.yaml"))
    assert said(tmp_path) == ["step s: workflow sub/nope.yaml: sub/nope.yaml: no such file"]


def test_a_cycle_over_two_files_and_through_a_symlink(tmp_path):
    write(tmp_path, w=nesting("./b.yaml"), b=nesting("link.yaml"))
    (tmp_path / "link.yaml").symlink_to("w.yaml")
    assert len(said(tmp_path)) == 1
    assert "cycle: w.yaml → ./b.yaml → link.yaml" in said(tmp_path)[0]


def test_errors_of_a_child_come_with_its_place(tmp_path):
    write(tmp_path, w=nesting("b.yaml"), b=HEAD + "steps: [{ name: c, run: [x], if: nope }]\n")
    assert said(tmp_path) == [
        "step s: workflow b.yaml: b.yaml:4:34: step c: if: undeclared reference to 'nope'",
    ]


def test_inputs_of_a_child(tmp_path):
    write(tmp_path, w=nesting("leaf.yaml", "    with: { zz: 1 }\n"), leaf=LEAF)
    assert sorted(said(tmp_path)) == [
        "step s: workflow leaf.yaml: inputs.who is required (with: { who: ... })",
        'step s: workflow leaf.yaml: unknown input "zz" (declared: n, who)',
    ]


def test_a_sound_child_is_in_the_read_set(tmp_path):
    write(tmp_path, w=nesting("leaf.yaml", "    with: { who: '{{ 1 }}' }\n"), leaf=LEAF)
    path = str(tmp_path / "w.yaml")
    found = compile_source("w.yaml", path, read_source(path, 1 << 20))
    assert found.plan is not None
    assert [file.path for file in found.plan.read_set] == ["w.yaml", "leaf.yaml"]


def test_the_same_child_twice_is_no_cycle(tmp_path):
    more = "    with: { who: a }\n  - name: t\n    workflow: ./leaf.yaml\n    with: { who: b }\n"
    write(tmp_path, w=nesting("leaf.yaml", more), leaf=LEAF)
    assert said(tmp_path) == []


def test_remote_children_are_asked_of_the_loader_only(tmp_path):
    write(tmp_path, w=nesting("github:acme/flows@v1//x.yaml"))
    assert said(tmp_path) == [
        "step s: workflow github:acme/flows@v1//x.yaml: github:acme/flows@v1//x.yaml: is remote; "
        "it is fetched by a run and by lint, not here"
    ]

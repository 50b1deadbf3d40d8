"""Hooks of a blueprint: a job for each phase, pins for the lock, and what differs from the lock."""

from __future__ import annotations

import pytest

from flowstone.errors import PlanVersionError
from flowstone.formats.orun_job.blueprint import compile_blueprint
from flowstone.formats.orun_job.lock import complaints, decode, encode, merged, pins_of
from flowstone.source.file import read_source
from tests.unit.formats.orun_job.jobs import WORKFLOW

HEAD = "apiVersion: orun.dev/v1\nkind: Blueprint\nmetadata: { name: service }\nhooks:\n"
HOOKS = """\
  - { id: check, phase: preCreate, workflow: release.yaml, with: { image: a } }
  - { id: tell, phase: postCreate, workflow: nests.yaml, onFailure: continue }
  - { id: push, phase: postCreate, workflow: release.yaml, with: { image: b } }
"""
NESTS = (
    "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: nests }\nsteps:\n  - { name: s, workflow: leaf.yaml }\n"
)
LEAF = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: leaf }\nsteps:\n  - { name: s, run: [echo, a] }\n"


@pytest.fixture
def folder(tmp_path):
    for name, text in {"release": WORKFLOW, "nests": NESTS, "leaf": LEAF}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def compiled(folder, hooks=HOOKS):
    path = folder / "service.yaml"
    path.write_text(HEAD + hooks)
    return compile_blueprint(read_source(str(path), 1 << 20), lambda nested: read_source(nested, 1 << 20))


def said(folder, hooks):
    return [f"{d.place.line}:{d.place.column} {d.code}" for d in compiled(folder, hooks)[1]]


def test_a_phase_runs_its_hooks_in_the_order_of_the_file(folder):
    blueprint, diagnostics = compiled(folder)
    assert diagnostics == ()
    assert {phase: [s.id for s in plan.steps] for phase, plan in blueprint.phases.items()} == {
        "preCreate": ["check"],
        "postCreate": ["tell", "push"],
    }
    assert [plan.name for plan in blueprint.phases.values()] == ["service-pre-create", "service-post-create"]


@pytest.mark.parametrize(
    ("hooks", "codes"),
    [
        ("  []\n", ["1:1 no-hooks"]),
        ("  - { id: a, phase: x }\n", ["5:11 missing-workflow"]),
        ("  - { id: a, workflow: leaf.yaml }\n", ["5:5 invalid-name"]),
        ("  - { id: a, phase: p, workflow: leaf.yaml, run: x }\n", ["5:45 unknown-key"]),
        ("  - { id: a, phase: p, workflow: no.yaml }\n", ["5:34 child-missing"]),
        (HOOKS + "  - { id: tell, phase: other, workflow: leaf.yaml }\n", ["8:11 duplicate-hook"]),
    ],
)
def test_mistakes(folder, hooks, codes):
    assert said(folder, hooks) == codes


def test_the_lock_pins_each_hook_with_all_that_its_workflow_nests(folder):
    pins = pins_of("service.yaml", compiled(folder)[0])
    assert [(pin.id, pin.phase, pin.workflow) for pin in pins] == [
        ("check", "preCreate", "release.yaml"),
        ("tell", "postCreate", "nests.yaml"),
        ("push", "postCreate", "release.yaml"),
    ]
    assert [file.path for file in pins[1].nested] == ["leaf.yaml"]
    assert decode(encode(pins)) == pins


def test_all_that_differs_is_told(folder):
    pinned = pins_of("service.yaml", compiled(folder)[0])
    assert list(complaints("service.yaml", pinned, pinned)) == []
    (folder / "leaf.yaml").write_text(LEAF.replace("echo, a", "echo, b"))
    hooks = HOOKS.replace("id: check", "id: checks").replace("push, phase: postCreate", "push, phase: preCreate")
    now = pins_of("service.yaml", compiled(folder, hooks)[0])
    told = list(complaints("service.yaml", pinned, now))
    assert [text.partition(" (")[0] for text in told] == [
        "service.yaml: hook checks is not pinned",
        "service.yaml: hook tell: leaf.yaml: digest changed",
        "service.yaml: hook push: phase changed",
        "service.yaml: hook check is pinned, but the blueprint does not have it",
    ]


def test_pins_of_another_blueprint_stay(folder):
    pins = pins_of("service.yaml", compiled(folder)[0])
    other = pins_of("a/other.yaml", compiled(folder)[0])
    both = merged(pins, "a/other.yaml", other)
    assert [pin.blueprint for pin in both] == ["a/other.yaml"] * 3 + ["service.yaml"] * 3
    assert merged(both, "service.yaml", pins[:1]) == (*other, pins[0])


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"apiVersion":"orun.dev/v1","kind":"ProvenanceLock"}', '{"apiVersion":1}']
)
def test_a_damaged_lock_is_refused(text):
    with pytest.raises(PlanVersionError):
        decode(text)

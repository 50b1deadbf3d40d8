"""Every file that a plan was made of is guarded: what changes while a plan is frozen publishes nothing."""

from __future__ import annotations

import os

import pytest

from flowstone.api import Flowstone
from flowstone.api.library import StoredFiles
from flowstone.errors import FreezeError

HEAD = "name: W\non:\n  workflow_dispatch: {}\njobs:\n  j:\n    runs-on: [self-hosted]\n    steps:\n"
FILES = {
    "workflows/w.yml": HEAD
    + "      - { id: a, uses: commands/review }\n      - { id: b, uses: scripts/s.sh }\n"
    + "      - { id: c, uses: tasks/t }\n      - { id: d, uses: tasks/child }\n"
    + "      - { id: e, uses: bundle//scripts/s }\n",
    "workflows/inner.yml": HEAD + "      - { id: a, uses: scripts/inner.sh }\n",
    "commands/review.md": "---\nagent: strict\n---\nReview.\n",
    "agents/strict.md": "---\nmodel: m\n---\nBe strict.\n",
    "scripts/s.sh": "echo 1\n",
    "scripts/t.sh": "echo 2\n",
    "scripts/inner.sh": "echo 3\n",
    "tasks/t.yml": "version: 4\nuses: scripts/t.sh\n",
    "tasks/child.yml": "version: 4\nuses: workflows/inner\n",
}
CONFIG = '{"engines": {"me": {"kind": "agent", "platform": "claude"}}, "defaults": {"engine": "me"}}'


@pytest.fixture
def bundle(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "bundle" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.json").write_text(CONFIG)
    return tmp_path / "bundle"


@pytest.fixture
def flow(tmp_path, bundle):
    names = {f"AKM_{name.upper()}_DIR": str(tmp_path / name) for name in ("config", "data", "state", "cache", "bundle")}
    with Flowstone(str(tmp_path), {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **names}) as flow:
        yield flow


def test_the_read_set_names_each_file_once(flow, bundle):
    plan = flow.plan("workflows/w").plan
    assert [os.path.relpath(flow.wiring.place(file.path), bundle) for file in plan.read_set] == [
        "workflows/w.yml",
        "commands/review.md",
        "agents/strict.md",
        "scripts/s.sh",
        "tasks/t.yml",
        "scripts/t.sh",
        "tasks/child.yml",
        "workflows/inner.yml",
        "scripts/inner.sh",
    ]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["edit", "remove"])
def test_what_changes_between_freezing_and_publishing_publishes_nothing(flow, bundle, monkeypatch, name, change):
    real = flow.session.compiling.freeze

    def freezing(workflow):
        frozen = real(workflow)
        if change == "edit":
            (bundle / name).write_text(FILES[name] + "\n")
        elif name != "workflows/w.yml":
            (bundle / name).unlink()
        else:
            (bundle / name).write_text("")
        return frozen

    monkeypatch.setattr(flow.session.compiling, "freeze", freezing)
    with pytest.raises(FreezeError, match="changed while") as caught:
        flow.start("workflows/w")
    assert caught.value.code == "WORKFLOW_SOURCE_CHANGED"
    assert os.path.basename(name) in caught.value.message
    assert flow.list() == []


def test_one_file_read_twice_must_be_the_same_twice(flow, bundle, monkeypatch):
    real = StoredFiles.script

    def reading(self, ref):
        found = real(self, ref)
        (bundle / "scripts/s.sh").write_text("echo other\n")
        return found

    monkeypatch.setattr(StoredFiles, "script", reading)
    with pytest.raises(FreezeError, match=r"s\.sh changed while") as caught:
        flow.start("workflows/w")
    assert caught.value.code == "WORKFLOW_SOURCE_CHANGED"
    assert flow.list() == []


def test_a_started_run_keeps_what_it_was_frozen_with(flow, bundle):
    started = flow.start("workflows/inner")
    for name in FILES:
        (bundle / name).write_text("broken")
    report = flow.drive(started.run_id)
    assert report.state.steps["a"].artifact == "3"

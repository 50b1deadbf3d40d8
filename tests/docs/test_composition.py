"""The example of a workflow of workflows runs, and its page tells its ways to go on as they are."""

from __future__ import annotations

import os
from pathlib import Path

from flowstone.api import Flowstone

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "composition"


def test_the_example_runs_to_its_end(tmp_path: Path) -> None:
    home = {f"AKM_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    env = {**home, "AKM_BUNDLE_DIR": str(EXAMPLE), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with Flowstone(str(tmp_path), env) as flow:
        report = flow.run("workflows/nightly")
        assert report.state.status == "succeeded"
        assert report.state.steps["count"].artifact == {"total": 3}
        children = flow.status(report.row.record.id).children
        assert [child.row.record.params for child in children] == [
            {"words": ["one", "two", "three"]},
            {"times": 3, "who": "world"},
        ]

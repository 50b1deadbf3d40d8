"""Every file of examples/features compiles, and runs to the end that it describes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flowstone.api import Flowstone

ROOT = Path(__file__).resolve().parents[2]
FEATURES = ROOT / "examples" / "features"
EXPECTED: dict[str, object] = {
    "approval.yaml": None,
    "budget.md": {"squares": [1, 4, 9]},
    "continue-on-error.yaml": None,
    "inputs-by-path.md": None,
    "inputs.yaml": None,
    "job.yaml": None,
    "interpolation.yaml": None,
    "map-collect.md": {"shouted": ["ALPHA", "BETA", "GAMMA"]},
    "map-vote.md": {"answer": "yes"},
    "max-parallel.yaml": None,
    "needs-and-if.yaml": None,
    "nightly.yml": None,
    "on-error-continue.md": {"results": ["code 0", None, "code 0"]},
    "outputs.md": {"total": 42},
    "outputs.yaml": {"lines": 3},
    "params-and-defaults.md": None,
    "poll.yaml": None,
    "retry.md": None,
    "retry.yaml": None,
    "route.md": None,
    "run-steps.yml": None,
    "sleep.yaml": None,
    "typed-output.md": None,
}
"""The outputs of each run; None for a file that declares none."""
NEEDS_A_SECRET = {"env-and-pass-env.md"}


def test_every_file_is_expected_to_do_something() -> None:
    assert {path.name for path in FEATURES.iterdir()} == EXPECTED.keys() | NEEDS_A_SECRET


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() | NEEDS_A_SECRET))
def test_it_compiles_without_a_word(name: str) -> None:
    with Flowstone(str(ROOT)) as flow:
        assert flow.compile(f"examples/features/{name}").diagnostics == ()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_it_runs(name: str, tmp_path: Path) -> None:
    with in_folder(tmp_path, name) as flow:
        state = flow.run(name).state
    assert (state.status, state.outputs or None) == ("succeeded", EXPECTED[name])


def test_counts_of_a_finished_map_are_those_of_its_units(tmp_path: Path) -> None:
    from flowstone.views.overview import unit_counts

    with in_folder(tmp_path, "on-error-continue.md") as flow:
        run_id = flow.run("on-error-continue.md").state.run_id
        state = flow.status(run_id).state
    assert unit_counts(state.steps["try"]) == {"total": 3, "succeeded": 2, "failed": 1, "running": 0}


def test_a_secret_comes_from_an_env_asset(tmp_path: Path) -> None:
    (tmp_path / "bundle" / "env").mkdir(parents=True)
    (tmp_path / "bundle" / "env" / "deploy.env").write_text("DEPLOY_TOKEN=not-a-real-token\n")
    with in_folder(tmp_path, "env-and-pass-env.md", BUILD_HOST="here") as flow:
        state = flow.run("env-and-pass-env.md").state
    assert (state.status, state.steps["deploy"].artifact) == ("succeeded", "deployed from here")


def in_folder(folder: Path, name: str, **more: str) -> Flowstone:
    shutil.copy(FEATURES / name, folder / name)
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "AKM_BUNDLE_DIR": str(folder / "bundle")}
    return Flowstone(str(folder), {**variables, "AKM_DATA_DIR": str(folder / "data"), **more})

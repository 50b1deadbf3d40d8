"""`orun plan`, `run`, `approve`, `reject` and `hooks` as processes: what people see, and how they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

JOB = """\
apiVersion: orun.dev/v1
kind: Job
metadata: { name: deploy }
steps:
  - name: build
    run: echo img:1
    outputs: { image: "stdout.trim()" }
  - name: release
    run: echo "released ${{ steps.build.outputs.image }}"
    approval: { prompt: "Release ${{ steps.build.outputs.image }}?", timeout: 30s }
"""
FLOW = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: flow }\nsteps:\n  - { name: s, run: [echo, hi] }\n"


@pytest.fixture
def project(tmp_path):
    return tmp_path / "project"


@pytest.fixture
def waiting(run, project, environment, tmp_path):
    """A driver that waits for the approval, as a process of its own: the process, its output file and the run's id."""
    (project / "job.yaml").write_text(JOB)
    assert run("orun", "plan", "job.yaml").returncode == 0
    started = []

    def start(*argv):
        out = tmp_path / f"out-{len(started)}"
        code = "from flowstone.cli.orun.main import main; main()"
        with out.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-c", code, "run", *argv],
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        started.append(process)
        deadline = time.monotonic() + 30
        while not (found := re.search(r"approve (deploy-\d+) release", out.read_text())):
            assert time.monotonic() < deadline, out.read_text()
            time.sleep(0.02)
        return process, out, found[1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_job_from_plan_to_end(run, project, waiting):
    process, out, run_id = waiting()
    shown = f'      asks: Release {{{{ steps["build"].outputs["image"] }}}}?  (approve {run_id} release, or reject)\n'
    assert shown in run("flowstone", "status", run_id).stdout
    said = run("orun", "approve", run_id, "release", "--note", "fine")
    assert (said.returncode, said.stdout) == (0, f"approved step release of {run_id}\n")
    assert process.wait(timeout=30) == 0
    assert out.read_text() == (
        "  ▸ build\n    build │ img:1\n  - build: succeeded\n"
        "  ▸ release_approval\n"
        "    release_approval │ waits for approval: Release img:1?\n"
        f"    release_approval │ decide with: approve {run_id} release   (or reject)\n"
        "  - release_approval: succeeded\n"
        "  ▸ release\n    release │ released img:1\n  - release: succeeded\n"
        f"job deploy: succeeded (exec {run_id})\n"
    )
    again = run("orun", "approve", run_id, "release")
    assert (again.returncode, again.stderr) == (1, '✕ Step "release" waits for no decision: it was approved.\n')


def test_a_rejected_job_fails(run, waiting):
    process, out, run_id = waiting()
    assert run("orun", "reject", run_id, "release", "--note", "not today").returncode == 0
    assert process.wait(timeout=30) == 1
    text = out.read_text()
    assert re.search(r"  - release_approval: failed\n      ✕ rejected by \S+: not today\n  - release: blocked\n", text)
    assert text.endswith("✕ job failed\n")


def test_a_second_driver_is_refused_and_the_first_one_goes_on(run, waiting):
    process, _, run_id = waiting()
    second = run("orun", "run", "--resume", run_id)
    assert second.returncode == 1
    assert second.stderr.startswith(f"✕ run {run_id} is held by pid {process.pid}")
    assert run("flowstone", "approve", run_id, "release").returncode == 0
    assert process.wait(timeout=30) == 0


def test_a_driver_that_is_killed_while_it_waits(run, waiting):
    process, _, run_id = waiting()
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = run("orun", "approve", run_id, "release")
    assert said.stdout == f"approved step release of {run_id}\ngo on with:  orun run --resume {run_id}\n"
    resumed = run("orun", "run", "--resume", run_id)
    assert resumed.returncode == 0
    assert "▸ build" not in resumed.stdout
    assert "waits for approval" not in resumed.stdout


def test_a_driver_that_is_interrupted_and_one_that_waits_anew(run, waiting):
    process, out, run_id = waiting()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    assert out.read_text().endswith(f"✕ job interrupted (--resume {run_id} goes on with it)\n")
    again, _, same = waiting("--resume", run_id)
    assert same == run_id
    assert run("orun", "reject", run_id, "release").returncode == 0
    assert again.wait(timeout=30) == 1


def test_planning_again_changes_nothing(run, project):
    (project / "job.yaml").write_text(JOB)
    assert run("orun", "plan", "job.yaml").stdout == "written: plan.json\n"
    before = (project / "plan.json").read_bytes()
    assert run("orun", "plan", "job.yaml").stdout == "up to date: plan.json\n"
    assert (project / "plan.json").read_bytes() == before
    assert run("orun", "plan", "job.yaml", "--check").returncode == 0
    (project / "job.yaml").write_text(JOB + "# more\n")
    stale = run("orun", "plan", "job.yaml", "--check")
    assert (stale.returncode, stale.stderr) == (
        1,
        "✕ plan.json is not what job.yaml plans to now; run: orun plan job.yaml\n",
    )
    assert (project / "plan.json").read_bytes() == before


def test_all_mistakes_with_file_line_column_and_code(run, project):
    (project / "job.yaml").write_text(
        JOB.replace("build.outputs.image }}?", "built.outputs.image }}?") + "    resume: true\n"
    )
    said = run("orun", "plan", "job.yaml")
    assert said.returncode == 1
    assert not (project / "plan.json").exists()
    assert (
        "job.yaml:10:34: error: step release: approval.prompt: references steps.built, which is no earlier step [invisible-reference]"
        in said.stderr
    )
    assert (
        "job.yaml:11:13: error: step release: resume applies only to workflow: steps [key-of-other-verb]" in said.stderr
    )
    assert said.stderr.endswith("✕ job.yaml has 2 mistakes\n")


def test_a_changed_file_stops_all(run, project):
    (project / "flow.yaml").write_text(FLOW)
    (project / "job.yaml").write_text(JOB.partition("steps:")[0] + "steps: [{ name: a, workflow: flow.yaml }]\n")
    assert run("orun", "plan", "job.yaml").returncode == 0
    (project / "flow.yaml").write_text(FLOW + "# more\n")
    said = run("orun", "run")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("✕ plan.json: flow.yaml: digest changed (sha256:")
    assert not (project / ".orun").exists()


def test_without_a_plan_file(run):
    said = run("orun", "run")
    assert said.returncode == 1
    assert said.stderr.endswith("plan.json: no such file; make it with: orun plan JOB.yaml\n")


def test_hooks(run, project):
    (project / "flow.yaml").write_text(FLOW)
    (project / "service.yaml").write_text(
        "apiVersion: orun.dev/v1\nkind: Blueprint\nmetadata: { name: service }\n"
        "hooks:\n  - { id: a, phase: postCreate, workflow: flow.yaml }\n"
    )
    unpinned = run("orun", "hooks", "run", "service.yaml", "postCreate")
    assert unpinned.returncode == 1
    assert unpinned.stderr.endswith("pin the hooks first: orun hooks pin BLUEPRINT\n")
    assert run("orun", "hooks", "pin", "service.yaml").stdout.endswith("written: .orun/provenance.lock\n")
    assert run("orun", "hooks", "verify").stdout == "ok: 1 hook as pinned\n"
    assert "job service-post-create: succeeded" in run("orun", "hooks", "run", "service.yaml", "postCreate").stdout
    (project / "flow.yaml").write_text(FLOW + "# more\n")
    for words in (("verify",), ("run", "service.yaml", "postCreate")):
        said = run("orun", "hooks", *words)
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.startswith("✕ service.yaml: hook a: digest changed (sha256:")


def test_flowstone_knows_jobs_too(run, project):
    (project / "job.yaml").write_text(JOB.replace("    approval:", "    # approval:"))
    assert run("flowstone", "lint", "job.yaml").stdout == "job.yaml: ok\n"
    assert "release  command  ← build" in run("flowstone", "view", "job.yaml").stdout
    assert run("flowstone", "plan", "job.yaml").returncode == 0
    assert run("flowstone", "run", "job.yaml").returncode == 0
    assert os.path.isdir(project / ".orun" / "wfruns")

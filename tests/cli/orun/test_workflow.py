"""`orun workflow` as orun facts 2 words it."""

import json
import re
import time

import pytest

from tests.cli.flowstone.flows import BROKEN, CHAIN

LINES = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: lines }
steps:
  - name: much
    run: [python3, -c, "import sys; sys.stdout.write('line of ten\\\\n' * 350000)"]
"""
SHIM = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: shim }
steps:
  - name: inner
    run: [orun, workflow, digest, "{{ inputs.file }}"]
    outputs: { digest: stdout }
inputs: { file: { type: string, required: true } }
outputs: { digest: steps.inner.outputs.digest }
"""


@pytest.fixture
def project(tmp_path, run):
    folder = tmp_path / "project"
    for name, text in (("chain.yaml", CHAIN), ("broken.yaml", BROKEN), ("lines.yaml", LINES), ("shim.yaml", SHIM)):
        (folder / name).write_text(text)
    return folder


def exec_id(text):
    return re.search(r"\(exec (\S+)\)", text)[1]


def test_validate_digest_and_view(run, project):
    ok = run("orun", "workflow", "validate", "chain.yaml")
    digest = re.fullmatch(r"ok: chain\.yaml \((sha256:[0-9a-f]{64})\)\n", ok.stdout)[1]
    assert run("orun", "workflow", "digest", "chain.yaml").stdout == f"{digest}\n"
    viewed = run("orun", "workflow", "view", "chain.yaml").stdout
    assert viewed == "workflow chain (2 steps)\n  greet [run]\n  test [run] ← greet\n"


def test_all_mistakes_on_stderr_and_exit_1(run, project):
    refused = run("orun", "workflow", "validate", "broken.yaml")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("✕ ")
    assert 'needs unknown step "zzz"' in refused.stderr
    assert "rum" in refused.stderr


def test_a_failed_run_and_its_resume(run, project):
    failed = run("orun", "workflow", "run", "chain.yaml", "--set", "who=Bob", "--set", " who =Eve")
    assert failed.returncode == 1
    assert failed.stderr == "✕ workflow failed\n"
    lines = failed.stdout.splitlines()
    assert lines[:3] == ["  ▸ greet", "    greet │ hello Eve", "  - greet: succeeded"]
    assert lines[3:5] == ["  ▸ test", "  - test: failed"]
    assert lines[5].startswith("      ✕ run: sh exited 1")
    assert re.fullmatch(r"workflow chain\.yaml: failed \(exec chain-\d+\)", lines[6])

    (project / "fixed").touch()
    resumed = run("orun", "workflow", "run", "--resume", exec_id(failed.stdout), "chain.yaml")
    assert resumed.returncode == 0
    assert "greet │" not in resumed.stdout
    assert "\nworkflow chain.yaml: succeeded (exec " in resumed.stdout
    assert "  said = hello Eve" in resumed.stdout

    again = run("orun", "workflow", "run", "chain.yaml", "--resume", exec_id(failed.stdout))
    assert again.returncode == 0
    assert "▸" not in again.stdout


def test_a_resume_of_a_changed_file_is_refused(run, project):
    failed = run("orun", "workflow", "run", "chain.yaml")
    (project / "chain.yaml").write_text(CHAIN + "\n")
    refused = run("orun", "workflow", "run", "chain.yaml", "--resume", exec_id(failed.stdout))
    assert refused.returncode == 1
    assert re.search(
        r"✕ resume chain-\d+: workflow digest changed \(sha256:\S+ → sha256:\S+\) — a resumed", refused.stderr
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--set", "a"], 'invalid --set "a": expected key=value'),
        (["--connection", "x"], 'invalid --connection "x": expected name.field=value'),
        (["--set", "zz=1"], 'unknown input "zz"'),
        (["--resume", "../x"], "exec id"),
        (["--resume", "chain-123456789"], "not found"),
    ],
)
def test_flags_that_do_not_fit(run, project, argv, said):
    refused = run("orun", "workflow", "run", "chain.yaml", *argv)
    assert refused.returncode == 1
    assert refused.stderr.startswith("✕ ")
    assert said in refused.stderr


def test_help(run, project):
    assert "validate" in run("orun", "workflow").stdout
    assert "Who is greeted" in run("orun", "workflow", "run", "chain.yaml", "--help").stdout


def test_the_shim_is_this_very_program(run, project):
    file = str(project / "chain.yaml")
    ended = run("orun", "workflow", "run", "shim.yaml", "--set", f"file={file}")
    assert ended.returncode == 0, ended.stderr + ended.stdout
    assert run("orun", "workflow", "digest", "chain.yaml").stdout.strip() in ended.stdout


def test_megabytes_of_short_lines_cost_little(run, project):
    began = time.monotonic()
    ended = run("orun", "workflow", "run", "lines.yaml")
    assert time.monotonic() - began < 15
    assert ended.stdout.count("    much │ line of ten\n") == 350_000


def test_a_result_is_written_for_others(run, project):
    (project / "fixed").touch()
    ended = run("orun", "workflow", "run", "chain.yaml")
    folder = project / ".orun" / "wfruns" / exec_id(ended.stdout)
    assert json.loads((folder / "result.json").read_text())["outputs"] == {"said": "hello World\n"}

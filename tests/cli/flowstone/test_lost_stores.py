"""A step that takes the journal away while its run goes on: an error, and nothing is claimed as done."""

import pytest

AKM = """\
---
type: workflow
steps:
  - id: harm
    unit: {{ exec: {{ command: [sh, -c, "{script}"] }} }}
  - id: after
    unit: {{ exec: {{ command: [touch, after] }} }}
---

# Harm

## harm

Take the journal away.

## after

Go on.
"""
ORUN = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: harm }}
steps:
  - name: harm
    cwd: "."
    run: [sh, -c, "{script}"]
  - name: after
    needs: [harm]
    cwd: "."
    run: [touch, after]
"""


@pytest.mark.parametrize(
    "script", ["rm -rf {data}", "rm {data}/*/*.db {data}/*.db", "mv {data} {data}.old; mkdir {data}"]
)
def test_a_removed_database_is_a_store_error(run, environment, tmp_path, script):
    project = tmp_path / "project"
    (project / "harm.md").write_text(AKM.format(script=script.format(data=environment["AKM_DATA_DIR"])))
    ended = run("flowstone", "run", "harm.md")
    assert ended.returncode == 70
    assert "was removed or replaced while it was in use" in ended.stderr
    assert "succeeded" not in ended.stdout
    assert not (project / "after").exists()
    again = run("akm", "workflow", "run", "./harm.md")
    assert again.returncode == 70
    assert '"STATE_DB_UNAVAILABLE"' in again.stderr


def test_a_removed_orun_folder_is_a_store_error(run, tmp_path, environment):
    project = tmp_path / "project"
    (project / "harm.yaml").write_text(ORUN.format(script="rm -rf .orun"))
    ended = run("orun", "workflow", "run", "harm.yaml")
    assert ended.returncode == 1
    assert "was removed or replaced while it was in use" in ended.stderr
    assert "succeeded" not in ended.stdout
    assert not (project / "after").exists()

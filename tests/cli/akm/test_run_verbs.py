"""run, status, list, resume and abandon as a user sees them (akm facts 19 and 21)."""

import json
import signal
import subprocess
import sys
import time

HOLD = "touch started; while test ! -f go; do sleep 0.02; done"


def test_run_completes(akm):
    akm.workflow("w", ("a", "echo A"), ("b", "echo B"))
    done = akm.json("workflow", "run", "workflows/w")
    assert (done["run"]["status"], done["done"], done["stepsProcessed"]) == ("completed", True, 2)
    assert done["run"]["workflowRef"] == "bundle//workflows/w"


def test_run_a_file(akm):
    path = akm.workflow("w", ("a", "echo A"))
    path.rename(akm.folder / "project" / "flow.md")
    assert akm.json("workflow", "run", "./flow.md")["run"]["status"] == "completed"
    assert akm.json("workflow", "status", "flow.md")["run"]["status"] == "completed"


def test_flags_in_any_order_and_help(akm):
    akm.workflow("w", ("a", "true"), head="params: { n: { type: integer, description: How many } }\n")
    done = akm.json("workflow", "run", "workflows/w", "--max-steps", "1", "--n", "-1", "--format", "json")
    assert done["run"]["params"] == {"n": -1}
    assert "How many" in akm("workflow", "run", "workflows/w", "--help").stdout
    error = akm.error("workflow", "run", "workflows/w", "--zz", "1", code=2)
    assert (error["code"], "--n" in error["hint"]) == ("UNKNOWN_FLAG", True)


def test_state_machine_of_an_active_run(akm):
    akm.workflow("w", ("a", "echo a >> ran"), ("b", "echo b >> ran"), head="params: { v: { type: string } }\n")
    first = akm.json("workflow", "run", "workflows/w", "--max-steps", "1")["run"]
    assert (first["status"], first["currentStepId"]) == ("active", "b")
    for target in ("workflows/w", first["id"]):
        assert akm.error("workflow", "run", target, "--v", "x", code=2)["code"] in (
            "INVALID_FLAG_VALUE",
            "UNKNOWN_FLAG",
        )
    assert akm.json("workflow", "resume", first["id"])["run"]["status"] == "active"
    assert [run["id"] for run in akm.json("workflow", "list", "--active")["runs"]] == [first["id"]]
    done = akm.json("workflow", "run", "workflows/w")
    assert (done["run"]["id"], done["resumed"]) == (first["id"], True)
    assert akm.json("workflow", "list", "--active")["runs"] == []
    again = akm.json("workflow", "run", first["id"])
    assert (again["done"], again["executed"]) == (True, [])
    assert akm.error("workflow", "resume", first["id"], code=2)["code"] == "RUN_COMPLETED"
    assert (akm.folder / "project" / "ran").read_text() == "a\nb\n"


def test_state_machine_of_a_failed_run(akm):
    akm.workflow("w", ("a", "echo out; echo err >&2; exit 3"))
    run_id = akm.json("workflow", "run", "workflows/w", code=1)["run"]["id"]
    error = akm.error("workflow", "run", run_id, code=2)
    assert (error["code"], "resume" in error["hint"]) == ("RUN_NOT_ACTIVE", True)
    assert akm.error("workflow", "abandon", run_id, code=2)["code"] == "RUN_NOT_ACTIVE"
    unit = akm.json("workflow", "status", run_id[:12], "--units")["units"][0]
    assert (unit["failureReason"], unit["runtimeKind"]) == ("non_zero_exit", "exec")
    assert "err" in unit["diagnostic"]
    assert akm.json("workflow", "resume", run_id)["run"]["status"] == "active"
    assert akm.json("workflow", "abandon", run_id)["run"]["status"] == "failed"
    assert akm.json("workflow", "resume", run_id)["run"]["status"] == "active"


def test_unknown_targets(akm):
    assert akm.error("workflow", "run", "workflows/no", code=1)["code"] == "ASSET_NOT_FOUND"
    assert akm.error("workflow", "run", "0199aaaa-0000", code=1)["code"] == "WORKFLOW_NOT_FOUND"
    assert akm.error("workflow", "status", "workflows/no", code=1)["error"] == "No workflow runs found for workflows/no"
    assert akm.error("workflow", "status", code=2)["code"] == "MISSING_REQUIRED_ARGUMENT"
    assert akm.error("workflow", "resume", "0199aaaa-0000", code=1)["code"] == "WORKFLOW_NOT_FOUND"
    assert not (akm.folder / "data").exists()


def test_time_limit(akm):
    akm.workflow("w", ("a", "sleep 30"))
    done = akm.json("workflow", "run", "workflows/w", "--timeout", "300ms", code=1)
    assert (done["aborted"], done["timedOut"], done["run"]["status"]) == (True, True, "active")
    assert akm.error("workflow", "run", "workflows/w", "--timeout", "2h", code=2)["code"] == "INVALID_FLAG_VALUE"


def test_outputs_that_cannot_be_resolved(akm):
    akm.workflow("w", ("a", "echo text"), head="outputs: { n: { from: steps.a.output.n } }\n")
    error = akm.error("workflow", "run", "workflows/w", code=2)
    assert error["code"] == "WORKFLOW_OUTPUT_INVALID"
    shown = akm.json("workflow", "status", "workflows/w")
    assert (shown["run"]["status"], shown["workflow"]["steps"][0]["status"]) == ("active", "pending")


def test_source_change_is_told_once(akm):
    path = akm.workflow("w", ("a", "true"), ("b", "test -f ok"))
    run_id = akm.json("workflow", "run", "workflows/w", code=1)["run"]["id"]
    path.write_text(path.read_text() + "\nMore words.\n")
    done = akm("workflow", "resume", run_id)
    assert done.stderr.count("has changed") == 1
    assert "has changed" in json.loads(done.stdout)["warnings"][0]
    assert akm("workflow", "run", run_id, "--quiet").stderr == ""


def test_second_driver_is_refused(akm, environment):
    akm.workflow("w", ("a", HOLD))
    code = "from flowstone.cli.akm.main import main; main()"
    argv = [sys.executable, "-c", code, "workflow", "run", "workflows/w"]
    with subprocess.Popen(argv, cwd=akm.folder / "project", env=environment, stdout=subprocess.PIPE) as first:
        wait_for(akm.folder / "project" / "started", first)
        error = akm.error("workflow", "run", "workflows/w", code=75)
        skipped = akm.json("workflow", "run", "workflows/w", "--skip-if-locked")
        (akm.folder / "project" / "go").touch()
        assert json.loads(first.communicate(timeout=30)[0])["run"]["status"] == "completed"
    assert error["code"] == "RUN_LEASE_HELD"
    assert str(first.pid) in error["error"]
    assert skipped["skipped"]["reason"] == "lock-held"


def test_hangup_and_term_print_the_envelope(akm, environment):
    akm.workflow("w", ("a", HOLD))
    code = "from flowstone.cli.akm.main import main; main()"
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        started = akm.folder / "project" / "started"
        started.unlink(missing_ok=True)
        argv = [sys.executable, "-c", code, "workflow", "run", "workflows/w"]
        with subprocess.Popen(argv, cwd=akm.folder / "project", env=environment, stdout=subprocess.PIPE) as process:
            wait_for(started, process)
            process.send_signal(number)
            shown = json.loads(process.communicate(timeout=30)[0])
        assert process.returncode == expected
        assert (shown["aborted"], shown["timedOut"], shown["run"]["status"]) == (True, False, "active")
    unit = akm.json("workflow", "status", "workflows/w", "--units")["units"][0]
    assert (unit["status"], unit["failureReason"]) == ("failed", "aborted")


def test_formats(akm):
    akm.workflow("w", ("a", "echo A"))
    akm("workflow", "run", "workflows/w")
    text = akm("workflow", "status", "workflows/w", "--units", "--format", "text").stdout
    assert "✓ a  completed" in text
    assert "a:solo" in text
    page = akm("workflow", "status", "workflows/w", "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "completed" in akm("workflow", "list", "--format", "text").stdout
    assert len(akm("workflow", "list", "--format", "jsonl").stdout.splitlines()) == 1


def wait_for(path, process):
    end = time.monotonic() + 30
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists()

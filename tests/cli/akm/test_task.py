"""`akm task` as a user sees it (akm facts 27), with a stand-in for the program `crontab`."""

import json
import shlex
import subprocess
import sys
import time

import pytest

KID = """\
---
type: workflow
updated: 2026-01-01
description: t
params: { n: { type: integer }, s: { type: string } }
outputs: { got: { from: steps.k.output } }
steps:
  - id: k
    unit: { exec: { command: ["sh", "-c", "printf %s \\"$AKM_PARAMS\\"; pwd >&2"] } }
---

# T

## k

Do k.
"""
TASK = """\
version: 4
uses: workflows/kid
inputs:
  n: { type: integer, required: true, description: How many }
  s: { type: string, default: dflt }
"""
CRONTAB = """\
#!/bin/sh
case "$1" in
  -l) [ -f {table} ] && cat {table} || {{ echo "no crontab for ada" >&2; exit 1; }} ;;
  -e) cat {table} ;;
  -r) rm -f {table} ;;
  -) cat >{table} ;;
esac
"""


@pytest.fixture
def task(akm):
    akm.write("bundle/workflows/kid.md", KID)
    akm.write("bundle/tasks/t.yml", TASK)
    return akm


@pytest.fixture
def cron(akm, environment):
    """A crontab program of its own in front of the PATH; returns a function that reads the table."""
    table = akm.folder / "table"
    program = akm.write("bin/crontab", CRONTAB.format(table=shlex.quote(str(table))))
    program.chmod(0o755)
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    return lambda: table.read_text() if table.exists() else ""


@pytest.fixture
def no_cron(akm, environment):
    """A PATH on which there is no crontab."""
    for name in ("sh", "printf", "env"):
        (akm.folder / "few").mkdir(exist_ok=True)
        (akm.folder / "few" / name).symlink_to(f"/usr/bin/{name}")
    environment["PATH"] = str(akm.folder / "few")


def test_a_workflow_gets_the_inputs_as_params(task):
    done = task.json("task", "run", "t", "--n", "5")
    assert (done["status"], done["origin"], done["ref"], done["id"]) == ("completed", "manual", "bundle//tasks/t", "t")
    assert done["run"]["workflowRef"] == "bundle//workflows/kid"
    assert done["run"]["status"] == "completed"
    assert json.loads(done["outputs"]["got"]) == {"n": 5, "s": "dflt"}


@pytest.mark.parametrize("target", ["t", "tasks/t", "bundle//tasks/t", "../bundle/tasks/t.yml"])
def test_ways_to_name_a_task(task, target):
    assert task.json("task", "run", target, "--n=1", "--s=--x")["ok"] is True


def test_flags_that_do_not_fit(task):
    assert task.error("task", "run", "t", "--n", "5", "--zz", "1", code=2)["code"] == "UNKNOWN_FLAG"
    assert task.error("task", "run", "t", code=2)["code"] == "INPUT_BINDING_INVALID"
    assert task.error("task", "run", "t", "--n", "x", code=2)["code"] == "INPUT_BINDING_INVALID"
    assert task.json("workflow", "list")["runs"] == []
    assert task.json("task", "history")["runs"] == []


def test_help_lists_the_inputs(task):
    text = task("task", "run", "t", "--help").stdout
    assert "--n" in text
    assert "How many" in text


def test_inputs_that_the_workflow_does_not_take(task):
    task.write("bundle/tasks/t.yml", "version: 4\nuses: workflows/kid\ninputs: { other: { default: 1 } }\n")
    error = task.error("task", "run", "t", code=2)
    assert error["code"] == "INPUT_BINDING_INVALID"
    assert "workflows/kid" in error["error"]


def test_a_shell_text_and_its_exit_code(task):
    task.write("bundle/tasks/good.yml", "version: 4\nrun: echo a > got && echo $X >> got\nenv: { X: 1 }\n")
    task.write("bundle/tasks/bad.yml", "version: 4\nrun: exit 3\n")
    assert task.json("task", "run", "good")["status"] == "completed"
    assert (task.folder / "project/got").read_text() == "a\n1\n"
    failed = task.json("task", "run", "bad", code=1)
    assert (failed["status"], failed["detail"]["reason"], failed["ok"]) == ("failed", "non_zero_exit", False)


def test_time_limits(task):
    task.write("bundle/tasks/slow.yml", "version: 4\nrun: sleep 30\ntimeout: 200ms\n")
    assert task.json("task", "run", "slow", code=1)["detail"]["reason"] == "timeout"
    task.workflow("slow", ("a", "sleep 30"))
    task.write("bundle/tasks/slow.yml", "version: 4\nuses: workflows/slow\ntimeout: 500ms\n")
    late = task.json("task", "run", "slow", code=1)
    assert (late["status"], late["detail"]["reason"], late["run"]["status"]) == ("failed", "timeout", "active")


def test_bounds_of_a_workflow(task):
    task.workflow("two", ("a", "echo a"), ("b", "echo b"))
    task.write("bundle/tasks/two.yml", "version: 4\nuses: workflows/two\nmaxSteps: 1\n")
    assert task.json("task", "run", "two")["status"] == "active"


def test_values_of_redacted_variables_are_scrubbed(task):
    task.write("project/secret", "it is hunter-two-secret\n")
    task.write("bundle/tasks/leak.yml", "version: 4\nrun: cat secret\nredact: [MY_SECRET]\n")
    done = task.json("task", "run", "leak", MY_SECRET="hunter-two-secret")
    shown = task("workflow", "status", done["runId"], "--units").stdout
    assert "it is" in shown
    assert "hunter" not in shown


def test_a_task_that_is_not_there_or_not_sound(task):
    assert task.error("task", "run", "nope", code=1)["code"] == "ASSET_NOT_FOUND"
    task.write("bundle/tasks/t.yml", "run: echo x\n")
    assert task.error("task", "run", "t", code=2)["code"] == "TASK_SOURCE_INVALID"
    task.write("bundle/tasks/t.yml", "version: 9\nrun: echo x\n")
    assert task.error("task", "run", "t", code=2)["code"] == "TASK_SCHEMA_VERSION_UNSUPPORTED"


def test_an_older_version_runs_and_warns_once(task):
    task.write("bundle/tasks/t.yml", "version: 2\nworkflow: kid\nparams: { n: 7 }\n")
    done = task("task", "run", "t")
    assert json.loads(json.loads(done.stdout)["outputs"]["got"]) == {"n": 7}
    assert done.stderr.count("deprecated") == 1


def test_explain_shows_where_values_come_from_and_writes_nothing(task):
    told = task.json("task", "explain", "tasks/t", "--n", "4")
    assert [(one["name"], one["value"], one["provenance"]) for one in told["inputs"]] == [
        ("n", 4, "flag"),
        ("s", "dflt", "default"),
    ]
    assert told["target"] == {"kind": "workflows", "uses": "workflows/kid"}
    assert task.json("task", "explain", "t")["inputProblem"]
    assert task.json("workflow", "list")["runs"] == []
    assert not (task.folder / "data").exists()


def test_explain_hides_what_looks_secret(task):
    task.write(
        "bundle/tasks/t.yml",
        "version: 4\nuses: workflows/kid\ninputs: { api_token: { type: string, default: abcdefgh } }\n"
        'schedule: [{ cron: "@daily", inputs: { api_token: ijklmnop } }]\n',
    )
    text = task("task", "explain", "t").stdout
    assert "abcdefgh" not in text
    assert "ijklmnop" not in text
    assert '"provenance": "schedule-binding"' in text


@pytest.mark.parametrize(
    ("text", "outcome", "code"),
    [
        (TASK, "valid", 0),
        ("version: 3\nrun: x\n", "converts", 0),
        ("version: 2\nrun: x\n", "blocked", 1),
        ("version: 9\nrun: x\n", "blocked", 1),
        ("version: 4\nrun: x\nfoo: 1\n", "invalid", 1),
        ("run: x\n", "invalid", 1),
        ("name: W\non: {}\njobs: {}\n", "not-a-task", 1),
    ],
)
def test_validate(akm, text, outcome, code):
    akm.write("project/x.yml", text)
    assert akm.json("task", "validate", "x.yml", code=code)["outcome"] == outcome


def test_validate_of_what_cannot_be_read(akm):
    assert akm.error("task", "validate", "none.yml", code=2)["ok"] is False


def test_list(task):
    task.write("bundle/tasks/deep/b.yml", 'version: 4\nrun: x\ndescription: D\nschedule: "@daily"\n')
    task.write("bundle/tasks/broken.yml", "version: 4\n")
    rows = {row["ref"]: row for row in task.json("task", "list")["tasks"]}
    assert rows["bundle//tasks/deep/b"]["schedules"] == ["0 0 * * *"]
    assert rows["bundle//tasks/t"]["target"] == "workflows/kid"
    assert "exactly one of" in rows["bundle//tasks/broken"]["problem"]


def test_add_writes_a_task_and_enables_its_schedule(task, cron):
    made = task.json("task", "add", "nightly", "--workflow", "kid", "--schedule", "0 3 * * *", "--params", '{"n": 3}')
    assert (made["ref"], made["enabled"], made["scheduled"]) == ("bundle//tasks/nightly", True, True)
    assert task.json("task", "validate", made["path"])["outcome"] == "valid"
    assert cron().startswith("0 3 * * * cd ")
    assert cron().endswith("bundle//tasks/nightly#0\n")
    assert task.error("task", "add", "nightly", "--command", "x", code=2)["code"] == "RESOURCE_ALREADY_EXISTS"
    assert task.json("task", "add", "nightly", "--command", "x", "--force")["enabled"] is False
    assert cron() == ""
    assert task.json("task", "run", "nightly", code=1)["detail"]["reason"] == "non_zero_exit"


def test_add_without_enabling(task, cron):
    made = task.json("task", "add", "a/b", "--prompt", "Say hello", "--schedule", "@daily", "--disabled")
    assert (made["ref"], made["enabled"], cron()) == ("bundle//tasks/a/b", False, "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "MISSING_REQUIRED_ARGUMENT"),
        (("--workflow", "a", "--prompt", "b"), "MISSING_REQUIRED_ARGUMENT"),
        (("--command", "x", "--params", "nonsense"), "INVALID_JSON_ARGUMENT"),
        (("--command", "x", "--params", "[]"), "INVALID_JSON_ARGUMENT"),
        (("--command", "x", "--schedule", "soon"), "TASK_SOURCE_INVALID"),
        (("--command", "x", "--params", '{"bundle": 1}'), "TASK_SOURCE_INVALID"),
        (("--command", "x", "--bundle", "other"), "INVALID_FLAG_VALUE"),
    ],
)
def test_add_refuses(akm, words, code):
    assert akm.error("task", "add", "x", *words, code=2)["code"] == code
    assert not (akm.folder / "bundle/tasks").exists()


def test_a_name_does_not_lead_out_of_the_bundle(akm):
    assert akm.error("task", "add", "../x", "--command", "x", code=2)["code"] == "PATH_ESCAPE_VIOLATION"


def test_enable_sync_disable(task, cron):
    task.write("bundle/tasks/t.yml", TASK + 'schedule: [{ cron: "5/15 * * * *", inputs: { n: 1, s: "a b" } }]\n')
    assert [row["key"] for row in task.json("task", "enable", "t")["added"]] == ["bundle//tasks/t#0"]
    assert json.loads((task.folder / "config/config.json").read_text())["scheduler"]["enabled"] == ["bundle//tasks/t"]
    assert "task run t --bundle bundle --scheduled --n 1 --s 'a b' >/dev/null" in cron()
    before = cron()
    assert task.json("task", "sync")["unchanged"]
    assert task.json("task", "doctor")["findings"] == []
    assert cron() == before
    assert task.json("task", "disable", "t")["removed"]
    assert cron() == ""


def test_rows_of_another_installation_are_left_alone(task, cron):
    task.write("bundle/tasks/t.yml", TASK + 'schedule: [{ cron: "0 6 * * *", inputs: { n: 1 } }]\n')
    other = str(task.folder / "other")
    task.json("task", "enable", "t", AKM_CONFIG_DIR=other)
    theirs = cron()
    task.json("task", "enable", "t")
    assert cron().startswith(theirs)
    assert len(cron().splitlines()) == 2
    task.json("task", "disable", "t")
    assert cron() == theirs


def test_a_row_of_another_program_needs_rebind(task, cron):
    task.write("bundle/tasks/t.yml", TASK + 'schedule: [{ cron: "0 6 * * *", inputs: { n: 1 } }]\n')
    task.json("task", "enable", "t")
    table = task.folder / "table"
    table.write_text(cron().replace("/bin/python", "/old/python", 1))
    assert "--rebind" in task.json("task", "sync", code=1)["failures"][0]["message"]
    assert "/old/python" in cron()
    assert task.json("task", "sync", "--rebind")["updated"]
    assert "/old/python" not in cron()


def test_a_dry_run_tells_of_removals_by_its_exit_code(task, cron):
    task.write("bundle/tasks/t.yml", TASK + 'schedule: [{ cron: "0 6 * * *", inputs: { n: 1 } }]\n')
    task.json("task", "enable", "t")
    task.json("config", "set", "scheduler.enabled", "[]")
    before = cron()
    assert task.json("task", "sync", "--dry-run", code=1)["removed"]
    assert task.json("task", "doctor", code=4)["findings"][0]["code"] == "ROW_OUT_OF_ORDER"
    assert cron() == before
    assert task.json("task", "sync")["removed"]


def test_an_unsound_source_keeps_its_row(task, cron):
    task.write("bundle/tasks/t.yml", TASK + 'schedule: [{ cron: "0 6 * * *", inputs: { n: 1 } }]\n')
    task.json("task", "enable", "t")
    before = cron()
    task.write("bundle/tasks/t.yml", "version: 4\n")
    assert task.json("task", "sync", code=1)["failures"][0]["code"] == "TASK_SOURCE_INVALID"
    assert cron() == before
    assert task.json("task", "disable", "t")["removed"]


def test_a_scheduled_workflow(task, cron):
    task.write(
        "bundle/workflows/tick.yml",
        'name: W\non:\n  schedule: [{ cron: "0 6 * * *" }]\njobs:\n  j:\n    runs-on: [self-hosted]\n'
        "    steps:\n      - id: a\n        run: echo x\n",
    )
    task.json("task", "enable", "workflows/tick")
    assert "workflow run bundle//workflows/tick --skip-if-locked >/dev/null" in cron()
    assert "no schedule" in task.error("task", "enable", "workflows/kid", code=2)["error"]


def test_without_cron_the_file_is_written_and_the_rest_is_told(task, no_cron):
    done = task("task", "add", "nightly", "--workflow", "kid", "--schedule", "@daily")
    assert done.returncode == 0
    assert json.loads(done.stdout)["scheduled"] is False
    assert "apt-get install cron" in done.stderr
    assert task.error("task", "sync", code=1)["code"] == "SCHEDULER_UNAVAILABLE"
    assert task.json("task", "doctor", code=4)["available"] is False


def test_a_scheduled_start_needs_enabling(task):
    idle = task.json("task", "run", "t", "--n", "1", "--scheduled")
    assert (idle["status"], idle["detail"]["reason"], "runId" in idle) == ("disabled", "not-enabled", False)


def test_a_scheduled_start_beside_a_run_that_goes_on_does_nothing(task, environment):
    task.write("bundle/tasks/slow.yml", "version: 4\nrun: touch began; sleep 60\n")
    task.json("config", "set", "scheduler.enabled", '["bundle//tasks/slow"]')
    code = "from flowstone.cli.akm.main import main; main()"
    words = [sys.executable, "-c", code, "task", "run", "slow", "--scheduled"]
    first = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    began = task.folder / "bundle/began"
    while not began.exists():
        assert first.poll() is None
        time.sleep(0.05)
    second = task.json("task", "run", "slow", "--scheduled")
    assert (second["status"], second["detail"]["reason"]) == ("active", "earlier-run-goes-on")
    first.terminate()
    told = json.loads(first.communicate(timeout=20)[0])
    assert (first.returncode, told["status"], told["detail"]["reason"]) == (143, "active", "aborted")


def test_a_scheduled_start_works_in_the_bundle_with_a_wider_path(task):
    (task.folder / "home/.local/bin").mkdir(parents=True)
    task.write("bundle/tasks/t.yml", 'version: 4\nrun: pwd > got; echo "$PATH" >> got; echo $AKM_EVENT_SOURCE >> got\n')
    task.json("config", "set", "scheduler.enabled", '["bundle//tasks/t"]')
    done = task.json("task", "run", "t", "--bundle", "bundle", "--scheduled", PATH="/usr/bin:/bin")
    assert (done["status"], done["origin"]) == ("completed", "schedule")
    folder, path, source = (task.folder / "bundle/got").read_text().splitlines()
    assert folder == str(task.folder / "bundle")
    assert path.startswith("/usr/bin:/bin")
    assert f"{task.folder}/home/.local/bin" in path
    assert source == "schedule"


def test_history(task):
    for number in ("1", "2"):
        task.json("task", "run", "t", "--n", number)
    task.write("bundle/tasks/bad.yml", "version: 4\nrun: exit 3\n")
    task.json("task", "run", "bad", code=1)
    assert [run["ref"] for run in task.json("task", "history")["runs"]] == [
        "bundle//tasks/bad",
        *["bundle//tasks/t"] * 2,
    ]
    (newest,) = task.json("task", "history", "t", "--limit", "1")["runs"]
    assert newest["status"] == "completed"
    assert newest["durationMs"] >= 0
    (task.folder / "bundle/tasks/bad.yml").unlink()
    assert len(task.json("task", "history", "bad")["runs"]) == 1
    assert "failed (non_zero_exit)" in task("task", "history", "bad", "--format", "text").stdout


def test_a_start_whose_process_died_is_told_as_interrupted(task, environment):
    task.write("bundle/tasks/slow.yml", "version: 4\nrun: touch began; sleep 60\n")
    code = "from flowstone.cli.akm.main import main; main()"
    words = [sys.executable, "-c", code, "task", "run", "slow"]
    process = subprocess.Popen(
        words, cwd=task.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while not (task.folder / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    assert task.json("task", "history", "slow")["runs"][0]["status"] == "running"
    process.kill()
    process.wait()
    told = task.json("task", "history", "slow")["runs"][0]
    assert (told["status"], told["detail"]["reason"]) == ("active", "interrupted")


def test_lint_checks_tasks_too(task):
    task.write("bundle/tasks/bad.yml", "run: x\n")
    found = task.json("lint", "--type", "tasks")["flagged"]
    assert [(one["file"], one["issue"], one["line"]) for one in found] == [("tasks/bad.yml", "invalid-task-yaml", 1)]
    assert len(task.json("lint")["flagged"]) == 1
    assert task.json("lint", "--type", "workflows")["flagged"] == []


def test_show_tells_what_a_task_takes(task):
    shown = task.json("show", "tasks/t")
    assert (shown["type"], shown["ref"], shown["action"]) == ("task", "bundle//tasks/t", "akm task run bundle//tasks/t")
    assert [one["name"] for one in shown["inputs"]] == ["n", "s"]


def test_one_process_at_a_time_brings_schedules_in_order(task, cron):
    from flowstone.stores.lease import take_lease

    lease = take_lease(str(task.folder / "data/flowstone/schedule"), "sync", "pid 1")
    busy = task.error("task", "sync", code=75)
    lease.release()
    assert busy["code"] == "MAINTENANCE_BARRIER_BUSY"
    assert task.json("task", "sync")["ok"] is True


def test_a_scheduled_start_that_cannot_be_made_is_told_by_the_history(task):
    task.json("config", "set", "scheduler.enabled", '["bundle//tasks/t", "bundle//tasks/p"]')
    task.error("task", "run", "t", "--scheduled", code=2)
    task.write("bundle/tasks/t.yml", "version: 4\n")
    task.error("task", "run", "t", "--bundle", "bundle", "--scheduled", code=2)
    task.write("bundle/tasks/p.yml", "version: 4\nuses: akm/command\nwith: { content: Hello }\n")
    task.error("task", "run", "p", code=78)
    runs = task.json("task", "history")["runs"]
    assert [(run["ref"], run["status"], run["detail"]["reason"]) for run in runs] == [
        ("bundle//tasks/p", "failed", "INVALID_CONFIG_FILE"),
        ("bundle//tasks/t", "failed", "TASK_SOURCE_INVALID"),
        ("bundle//tasks/t", "failed", "INPUT_BINDING_INVALID"),
    ]


def test_prune_clears_away_what_is_left_of_a_task_that_is_gone(task, cron):
    for name in ("a", "b"):
        task.write(f"bundle/tasks/{name}.yml", 'version: 4\nrun: "true"\nschedule: "@daily"\n')
        task.json("task", "enable", name)
        task.json("task", "run", name)
    assert task.json("task", "prune")["leftovers"] == []
    (task.folder / "bundle/tasks/a.yml").unlink()
    left = task.json("task", "prune")["leftovers"]
    assert left == [{"ref": "bundle//tasks/a", "enabled": True, "rows": ["bundle//tasks/a#0"], "records": 1}]
    assert task.json("task", "prune", "--id", "b", "--yes")["leftovers"] == []
    assert "tasks/a#0" in cron()
    assert task.json("task", "prune", "--id", "a,other", "--yes")["pruned"] is True
    assert task.json("task", "prune")["leftovers"] == []
    assert "tasks/a#0" not in cron()
    assert "tasks/b#0" in cron()
    assert task.json("task", "history", "a")["runs"] == []
    assert task.json("task", "sync")["ok"] is True

"""Steps that use stored commands, scripts and tasks, and agents that commands name."""

import base64
import glob
import json
import os
import signal
import subprocess
import sys
import time

import pytest

HEAD = "name: W\non: { workflow_dispatch: {} }\njobs:\n  j:\n    runs-on: [self-hosted]\n    steps:\n"
PROGRAM = """#!/bin/sh
for word in "$@"; do printf '<%s>' "$word"; done >> "{log}"
printf ' TOKEN=%s' "$LEVEL" >> "{log}"
echo >> "{log}"
printf 'done'
"""


@pytest.fixture
def flow(akm):
    """Writes a YAML workflow of the given steps, in flow style, as workflows/w."""

    def write(*steps, name="w"):
        akm.write(f"bundle/workflows/{name}.yml", HEAD + "".join(f"      - {step}\n" for step in steps))

    return write


@pytest.fixture
def agent(akm):
    """An agent program that notes its words, as the default engine; returns what it was told so far."""
    log = akm.folder / "log"
    akm.write("agent", PROGRAM.format(log=log)).chmod(0o755)

    def configured(platform="claude", **document):
        engine = {"kind": "agent", "platform": platform, "bin": str(akm.folder / "agent")}
        model = {"kind": "llm", "endpoint": "http://127.0.0.1:9/v1/chat/completions", "model": "m1"}
        config = {"engines": {"ag": engine, "model": model}, "defaults": {"engine": "ag"}, **document}
        akm.write("config/config.json", json.dumps(config))

    configured()
    return lambda **change: configured(**change) if change else log.read_text()


def test_arguments_are_put_in_as_they_are(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\ndescription: d\n---\n\n\nReview $ARGUMENTS. Twice: $ARGUMENTS.\n\n")
    flow("{ id: a, uses: akm/command, with: { ref: commands/review, arguments: '$& \\1 $ARGUMENTS' } }")
    akm.json("workflow", "run", "workflows/w")
    assert "Review $& \\1 $ARGUMENTS. Twice: $& \\1 $ARGUMENTS.>" in agent()


def test_a_command_brings_its_agent_model_and_tools(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\nagent: critic\ntools: Read, Bash\n---\nReview it.\n")
    akm.write("bundle/agents/critic.md", "---\ntype: agent\nmodel: sonnet-9\n---\n\nYou are strict.\n")
    agent(execution={"allowedTools": ["Read"]})
    flow("{ id: a, uses: commands/review, env: { LEVEL: high } }")
    told = akm.json("workflow", "run", "workflows/w")
    words = agent()
    assert words.startswith("<--system-prompt><You are strict.><--model><sonnet-9><--allowedTools><Read><--print><-->")
    assert words.endswith("Review it.> TOKEN=high\n")
    assert "asks for the tools Bash, which are not granted" in told["warnings"][0]


def test_a_program_without_system_texts_has_a_persona_in_its_prompt(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\nagent: critic\n---\nReview it.\n")
    akm.write("bundle/agents/critic.md", "You are strict.\n")
    flow("{ id: a, uses: commands/review }")
    agent(platform="opencode")
    akm.json("workflow", "run", "workflows/w")
    assert agent().startswith("<run><--><You are strict.\n\n")


def test_a_step_is_not_given_an_agent_that_nobody_has(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\nagent: critic\n---\nReview it.\n")
    flow("{ id: a, uses: commands/review }")
    akm.json("workflow", "run", "workflows/w")
    assert "<--agent><critic>" in agent()  # the program may have one of that name
    agent(platform="pi")
    assert "no agents/critic in the bundles" in akm.error("workflow", "run", "workflows/w", code=2)["error"]
    akm.write("bundle/commands/review.md", "---\nagent: agents/critic\n---\nReview it.\n")
    agent(platform="claude")
    assert "agents/critic" in akm.error("workflow", "run", "workflows/w", code=1)["error"]


def test_a_model_has_no_environment(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\nengine: model\n---\nReview it.\n")
    flow("{ id: a, uses: commands/review, env: { LEVEL: high } }")
    found = akm.error("workflow", "run", "workflows/w", code=2)
    assert found["code"] == "COMPOSITION_INVALID"
    assert "LEVEL" in found["error"]


@pytest.mark.parametrize("construct", ["${HOME}", "$(date)", "$1", "$HOME", "$ARGUMENTS_X", "{{ x }}"])
def test_a_command_holds_no_other_substitution(akm, flow, agent, construct):
    akm.write("bundle/commands/review.md", f"---\ndescription: d\n---\n\nReview $ARGUMENTS.\nThen {construct}.\n")
    flow("{ id: a, uses: commands/review }")
    found = akm.error("workflow", "run", "workflows/w", code=2)
    assert found["code"] == "INVALID_FLAG_VALUE"
    assert "commands/review.md:6: " in found["error"]
    flagged = akm.json("lint", "--type", "commands")["flagged"]
    assert [(row["file"], row["line"]) for row in flagged] == [("commands/review.md", 6)]


def test_a_script_works_in_the_project_and_leaves_nothing_behind(akm, flow):
    akm.write(
        "bundle/scripts/deep/s.sh",
        'stat -c %a "$0" "$(dirname "$0")"; pwd; echo "$AKM_STEP_ID"; test "$LEVEL" = high; echo "$0" > where\n',
    )
    flow("{ id: a, uses: scripts/deep/s, env: { LEVEL: high } }")
    done = akm.json("workflow", "run", "workflows/w")
    status = akm.json("workflow", "status", done["run"]["id"])
    project = akm.folder / "project"
    assert status["workflow"]["steps"][0]["evidence"]["output"] == f"700\n700\n{project}\na"
    where = (project / "where").read_text().strip()
    assert where.endswith("/s.sh")
    assert not os.path.exists(os.path.dirname(where))


def test_a_started_run_keeps_its_scripts_bytes(akm, flow):
    script = akm.write("bundle/scripts/s.sh", "test -f ok && echo first\n")
    flow("{ id: a, uses: scripts/s.sh }")
    run = akm.json("workflow", "run", "workflows/w", code=1)["run"]["id"]
    script.write_text("echo second\n")
    (akm.folder / "project/ok").touch()
    akm.json("workflow", "resume", run)
    akm.json("workflow", "run", run)
    status = akm.json("workflow", "status", run)
    assert status["workflow"]["steps"][0]["evidence"]["output"] == "first"


def test_a_script_of_a_killed_run_is_deleted_by_its_next_drive(akm, flow, environment):
    akm.write("bundle/scripts/s.sh", "test -f ok || { touch begun; exec sleep 60; }\n")
    flow("{ id: a, uses: scripts/s.sh }")
    (akm.folder / "tmp").mkdir()
    there = {**environment, "TMPDIR": str(akm.folder / "tmp")}
    project = akm.folder / "project"
    code = "from flowstone.cli.akm.main import main; main()"
    words = [sys.executable, "-c", code, "workflow", "run", "workflows/w"]
    with subprocess.Popen(
        words, cwd=project, env=there, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as driver:
        deadline = time.monotonic() + 30
        while not (project / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        driver.send_signal(signal.SIGKILL)
    pattern = str(akm.folder / "tmp/flowstone-script-*")
    assert len(glob.glob(pattern)) == 1
    (project / "ok").touch()
    akm.json("workflow", "run", "workflows/w", TMPDIR=there["TMPDIR"])
    assert glob.glob(pattern) == []


def test_the_other_name_of_an_interpreter_is_tried(akm, flow):
    """A machine that calls Python python3 only runs Python scripts all the same."""
    akm.write("bundle/scripts/p.py", "print('hello')\n")
    flow("{ id: a, uses: scripts/p.py }")
    (akm.folder / "bin").mkdir()
    (akm.folder / "bin/python3").symlink_to(sys.executable)
    akm.json("workflow", "run", "workflows/w", PATH=str(akm.folder / "bin"))


def test_a_missing_interpreter_is_told(akm, flow):
    akm.write("bundle/scripts/p.swift", "print(1)\n")
    flow("{ id: a, uses: scripts/p }")
    found = akm.json("workflow", "run", "workflows/w", code=1, PATH="/nonexistent")
    assert '"swift"' in found["executed"][0]["summary"]


def test_what_a_step_uses_is_in_the_guarded_read_set_and_never_shown(akm, flow, agent):
    akm.write("bundle/scripts/s.sh", "echo hidden-text\n")
    akm.write("bundle/commands/review.md", "---\nagent: critic\n---\nReview hidden-text.\n")
    akm.write("bundle/agents/critic.md", "You are hidden-text.\n")
    akm.write(
        "bundle/tasks/t.yml", "version: 4\nuses: scripts/s.sh\ninputs: { level: { type: integer, default: 3 } }\n"
    )
    flow("{ id: a, uses: scripts/s.sh }", "{ id: b, uses: commands/review }", "{ id: c, uses: tasks/t }")
    done = akm("workflow", "plan", "workflows/w")
    plan = json.loads(done.stdout)
    assert "hidden-text" not in done.stdout
    assert base64.b64encode(b"echo hidden-text\n").decode() not in done.stdout
    read = [row["path"].removeprefix("../bundle/") for row in plan["sourceReadSet"]]
    assert read == ["workflows/w.yml", "scripts/s.sh", "commands/review.md", "agents/critic.md", "tasks/t.yml"]
    assert [step["targetKind"] for step in plan["steps"]] == ["script", "command", "script"]
    assert plan["steps"][2]["expansion"] == {"via": "task", "taskRef": "bundle//tasks/t"}


@pytest.mark.parametrize(
    ("target", "with_", "code"),
    [("commands/review", "{}", "COMPOSITION_INVALID"), ("scripts/s.sh", "{ a: 1 }", "COMPOSITION_INVALID")],
)
def test_commands_and_scripts_take_no_with(akm, flow, target, with_, code):
    akm.write("bundle/scripts/s.sh", "echo x\n")
    akm.write("bundle/commands/review.md", "Review it.\n")
    flow(f"{{ id: a, uses: {target}, with: {with_} }}")
    assert akm.error("workflow", "run", "workflows/w", code=2)["code"] == code


def test_a_task_gives_its_inputs_to_a_script_and_to_a_prompt(akm, flow, agent):
    inputs = "inputs: { level: { type: integer, required: true }, name: { type: string, default: x } }\n"
    akm.write("bundle/scripts/s.sh", 'printf "%s|%s" "$AKM_TASK_INPUTS" "$AKM_INPUTS"\n')
    akm.write("bundle/commands/review.md", "Review it.\n")
    akm.write("bundle/tasks/s.yml", "version: 4\nuses: scripts/s.sh\nenv: { A: task }\n" + inputs)
    akm.write("bundle/tasks/c.yml", "version: 4\nuses: commands/review\nenv: { LEVEL: task }\n" + inputs)
    flow(
        "{ id: a, run: echo 7 }",
        "{ id: n, uses: scripts/n.sh }",
        "{ id: b, uses: tasks/s, with: { level: { from: steps.n.output } } }",
        "{ id: c, uses: tasks/c, env: { LEVEL: step }, with: { level: 8, name: y } }",
    )
    akm.write("bundle/tasks/n.yml", "version: 4\nuses: scripts/n.sh\n")
    akm.write("bundle/scripts/n.sh", "echo word\n")
    found = akm.json("workflow", "run", "workflows/w", code=1)
    assert "with.level" in found["executed"][2]["summary"]
    assert "expected type integer" in found["executed"][2]["summary"]

    flow(
        "{ id: b, uses: tasks/s, with: { level: 7 } }",
        "{ id: c, uses: tasks/c, env: { LEVEL: step }, with: { level: 8, name: y } }",
    )
    done = akm.json("workflow", "run", "workflows/w")
    status = akm.json("workflow", "status", done["run"]["id"])
    assert status["workflow"]["steps"][0]["evidence"]["output"] == '{"level":7,"name":"x"}|'
    assert 'Task inputs\n```json\n{"level":8,"name":"y"}\n```> TOKEN=step' in agent()


def test_the_prompt_of_a_task_goes_before_what_its_command_says(akm, flow, agent):
    akm.write("bundle/commands/review.md", "---\nmodel: m-command\nagent: critic\n---\nReview it.\n")
    akm.write("bundle/agents/critic.md", "You are strict.\n")
    akm.write("bundle/agents/kind.md", "You are kind.\n")
    akm.write("bundle/tasks/t.yml", "version: 4\nuses: commands/review\nmodel: m-task\nagent: kind\n")
    flow("{ id: a, uses: tasks/t }")
    akm.json("workflow", "run", "workflows/w")
    assert agent().startswith("<--system-prompt><You are kind.><--model><m-task>")


def test_links_that_lead_out_of_a_bundle_are_refused(akm, flow, agent):
    akm.write("outside.md", "Steal it.\n")
    for kind in ("commands", "agents"):
        (akm.folder / "bundle" / kind).mkdir(parents=True)
        (akm.folder / "bundle" / kind / "out.md").symlink_to(akm.folder / "outside.md")
    akm.write("bundle/commands/ok.md", "---\nagent: out\n---\nReview it.\n")
    for used in ("commands/out", "commands/ok"):
        flow(f"{{ id: a, uses: {used} }}")
        assert akm.error("workflow", "run", "workflows/w", code=2)["code"] == "PATH_ESCAPE_VIOLATION"
    flow("{ id: a, uses: commands/../../x }")
    assert akm.error("workflow", "run", "workflows/w", code=2)["code"] == "WORKFLOW_SOURCE_INVALID"


def test_a_task_has_values_scrubbed_wherever_it_is_composed(akm, flow):
    akm.write("bundle/tasks/t.yml", "version: 4\nrun: 'echo leaks-here-$X'\nredact: [SHOWN_NOWHERE]\nenv: { X: y }\n")
    akm.write("bundle/scripts/s.sh", "echo value-of-the-host\n")
    flow("{ id: a, uses: tasks/t }", "{ id: b, uses: scripts/s.sh }")
    done = akm.json("workflow", "run", "workflows/w", SHOWN_NOWHERE="value-of-the-host")
    steps = akm.json("workflow", "status", done["run"]["id"])["workflow"]["steps"]
    assert steps[1]["evidence"]["output"] == "[REDACTED]"


def test_a_script_is_no_way_out_of_its_folder():
    """A plan that was tampered with names a file elsewhere."""
    from flowstone.plan.checks.structure import problems_of
    from flowstone.plan.model import Unit
    from flowstone.plan.units import ExecSpec, ScriptFile
    from flowstone.testing.plans import solo, spine

    plan = spine(solo("a", unit=Unit(ExecSpec(("sh",), script=ScriptFile("b//scripts/s.sh", "../s.sh", b"")))))
    assert problems_of(plan) == ["step \"a\": '../s.sh' is no name of a script's file"]

"""What an earlier orun got wrong (orun facts 5), each point once, as a user of the command would meet it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.wire import WireServer, page

SOURCE = str(Path(__file__).parents[2] / "src")
HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: w }\n"
ARGV = [sys.executable, "-c", "from flowstone.cli.orun.main import main; main()", "workflow"]


class Ended:
    """A command that has ended; `run` is the folder of the newest run."""

    def __init__(self, folder: Path, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        runs = sorted((folder / ".orun" / "wfruns").glob("*"), key=lambda path: path.stat().st_mtime_ns)
        self.run = runs[-1] if runs else folder

    def step(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run / "steps" / f"{name}.json").read_text())
        return found

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.run / "result.json").read_text())
        return found


Orun = Callable[..., Ended]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": SOURCE, "LANG": "C.UTF-8"}


@pytest.fixture
def orun(tmp_path: Path, environment: dict[str, str]) -> Orun:
    def ran(text: str | None, *words: str, verb: str = "run", **env: str) -> Ended:
        if text is not None:
            (tmp_path / "w.yaml").write_text(HEAD + text)
        ended = subprocess.run(
            [*ARGV, verb, "w.yaml", *words],
            cwd=tmp_path,
            env={**environment, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(tmp_path, ended.returncode, ended.stdout, ended.stderr)

    return ran


# Many parallel steps, and none lost: tests/crash/test_width.py, and by the hundred in script/soak.


def test_output_over_the_cap_is_cut_and_the_exit_code_decides(orun: Orun) -> None:
    ended = orun('steps: [{ name: a, run: [sh, -c, "yes 0123456789 | head -c 6000000; echo done >&2"] }]')
    assert ended.code == 0, ended.err
    step = ended.step("a")
    assert (len(step["stdout"]), step["stderr"], step["status"]) == (4 * 1024 * 1024, "done\n", "succeeded")


@pytest.mark.parametrize("value", ["double('NaN')", "1.0 / 0.0", "b'x'", "{1: 'a'}", "type(1)"])
def test_an_output_that_json_cannot_hold_fails_the_step_and_keeps_its_file(orun: Orun, value: str) -> None:
    ended = orun(f'steps: [{{ name: a, run: [echo, hi], outputs: {{ o: "{value}" }} }}]')
    assert ended.code == 1
    step = ended.step("a")
    assert step["status"] == "failed"
    assert step["stdout"] == "hi\n"
    assert step["error"].startswith("outputs.o: ")
    assert "cannot be stored as JSON" in step["error"]


@pytest.mark.parametrize(
    "step", ["run: [no-such-program-anywhere]", 'run: [echo, "{{ {}.x }}"]', 'run: ["true"], cwd: /no/such/folder']
)
def test_an_attempt_that_never_ran_satisfies_no_poll(orun: Orun, step: str) -> None:
    ended = orun(f'steps: [{{ name: a, {step}, poll: {{ interval: 20ms, timeout: 200ms, until: "true" }} }}]')
    assert ended.code == 1
    assert "not satisfied within 200ms after" in ended.step("a")["error"]


def test_a_condition_that_is_a_text_fails_the_step(orun: Orun) -> None:
    ended = orun("inputs: { on: { default: 'false' } }\nsteps: [{ name: a, if: inputs.on, run: [echo] }]")
    assert ended.code == 1
    assert ended.step("a")["error"] == "if: must be a bool, got string"


WAITING = """\
inputs: { n: { type: integer, default: 0 }, s: { type: string, secret: true } }
outputs: { same: "string(type(inputs.n) == int) + '/' + string(type(steps.a.outputs.big) == int)" }
steps:
  - name: a
    run: [sh, -c, "echo a >> count"]
    cwd: "."
    outputs: { big: "9007199254740993", n: "inputs.n" }
  - name: b
    needs: [a]
    run: [sh, -c, "test -e go && echo {{ steps.a.outputs.big }} {{ inputs.n }}"]
    cwd: "."
"""


def test_a_resume_keeps_the_kinds_of_numbers_and_the_inputs(orun: Orun, tmp_path: Path) -> None:
    first = orun(WAITING, "--set", "n=7")
    assert first.code == 1
    (tmp_path / "go").touch()
    again = orun(None, "--resume", first.run.name)
    assert again.code == 0, again.err
    assert again.step("b")["stdout"] == "9007199254740993 7\n"
    assert again.result["outputs"] == {"same": "true/true"}
    assert (tmp_path / "count").read_text() == "a\n"


def test_a_resume_trusts_no_stray_state_file(orun: Orun, tmp_path: Path) -> None:
    first = orun(WAITING)
    (first.run / "steps" / "b.json").write_text('{"name": "b", "status": "succeeded"}')
    (first.run / "steps" / "a.json").write_text("{ damaged")
    (tmp_path / "go").touch()
    again = orun(None, "--resume", first.run.name)
    assert again.code == 0, again.err
    assert "9007199254740993 0" in again.step("b")["stdout"]
    assert (tmp_path / "count").read_text() == "a\n"


def test_a_run_is_driven_by_one_process_only(orun: Orun, tmp_path: Path, environment: dict[str, str]) -> None:
    slow = 'steps: [{ name: a, run: [sh, -c, "touch begun; sleep 30"], cwd: "." }]'
    (tmp_path / "w.yaml").write_text(HEAD + slow)
    with subprocess.Popen([*ARGV, "run", "w.yaml"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as first:
        _wait_for(tmp_path / "begun")
        (run,) = (tmp_path / ".orun" / "wfruns").iterdir()
        second = orun(None, "--resume", run.name)
        first.send_signal(signal.SIGTERM)
    assert second.code == 1
    assert str(first.pid) in second.err
    assert "a: " not in second.out


def test_a_step_that_overwrites_the_state_files_changes_nothing(orun: Orun, tmp_path: Path) -> None:
    script = "rm -rf steps metadata.json result.json; mkdir -p steps; echo bad | tee steps/a.json steps/b.json"
    more = 'outputs: { o: "steps.a.outputs.o" }\n'
    steps = f'steps:\n  - {{ name: a, run: [sh, -c, "{script}"], outputs: {{ o: "1" }} }}\n'
    steps += f'  - {{ name: b, needs: [a], run: [test, -e, "{tmp_path}/go"] }}\n'
    first = orun(more + steps)
    assert first.code == 1
    assert first.step("a")["status"] == "succeeded"
    (tmp_path / "go").touch()
    again = orun(None, "--resume", first.run.name)
    assert again.code == 0, again.err
    assert again.result == {"status": "succeeded", "outputs": {"o": 1}}
    assert json.loads((again.run / "metadata.json").read_text())["workflow"] == "w"


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_process_and_a_state(
    tmp_path: Path, environment: dict[str, str], sent: signal.Signals, code: int
) -> None:
    script = "test -e go && exit 0; trap '' INT; sleep 60 & echo $! > pid; touch begun; wait"
    (tmp_path / "w.yaml").write_text(f'{HEAD}steps: [{{ name: a, run: [sh, -c, "{script}"], cwd: "." }}]')
    with subprocess.Popen(
        [*ARGV, "run", "w.yaml"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as driver:
        _wait_for(tmp_path / "begun")
        driver.send_signal(sent)
        driver.communicate(timeout=30)
    assert driver.returncode == code
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (run,) = (tmp_path / ".orun" / "wfruns").iterdir()
    assert (run / "metadata.json").is_file()
    (tmp_path / "go").touch()
    argv = [*ARGV, "run", "w.yaml", "--resume", run.name]
    assert subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == 0


def test_a_secret_input_is_shown_and_kept_nowhere(orun: Orun, tmp_path: Path) -> None:
    text = (
        "inputs: { key: { type: string, secret: true, required: true } }\n"
        'outputs: { o: "inputs.key" }\n'
        'steps: [{ name: a, run: [sh, -c, "echo {{ inputs.key }}; echo {{ inputs.key }} >&2"], outputs: { o: "stdout" } },'
        ' { name: b, run: [sh, -c, "exit 3 # {{ inputs.key }}"], continueOnError: true }]'
    )
    ended = orun(text, "--set", "key=hunter2-hunter2")
    assert ended.code == 0, ended.err
    assert "hunter2" not in ended.out + ended.err
    kept = [path for path in (tmp_path / ".orun").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]
    assert "o = [REDACTED]" in ended.out


def test_a_connection_that_was_not_granted_sends_nothing(orun: Orun, tmp_path: Path) -> None:
    with WireServer({"/": page()}) as server:
        ended = orun(
            "connections: { gh: { type: http.bearer } }\n"
            f"steps: [{{ name: f, run: [touch, ran], cwd: '.' }}, "
            f"{{ name: h, action: http.request, connection: gh, with: {{ url: '{server.url}/' }} }}]"
        )
        assert server.seen == []
    assert ended.code == 1
    assert 'connection "gh" was not granted' in ended.err
    assert not (tmp_path / "ran").exists()


def test_a_program_is_looked_up_on_the_path_of_the_command(orun: Orun, tmp_path: Path) -> None:
    for folder, said in (("host", "wrong"), ("own", "right")):
        tool = tmp_path / folder / "some-tool"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\necho {said}\n")
        tool.chmod(0o755)
    path = os.environ["PATH"]
    ended = orun(
        f'steps: [{{ name: a, run: [some-tool], env: {{ PATH: "{tmp_path}/own:{path}" }} }}, {{ name: b, run: [orun, --help] }}]',
        PATH=f"{tmp_path}/host:{path}",
    )
    assert ended.code == 0, ended.err
    assert ended.step("a")["stdout"] == "right\n"
    assert "workflow" in ended.step("b")["stdout"]


def test_null_stays_null(orun: Orun) -> None:
    ended = orun(
        'outputs: { o: "steps.a.outputs.n", t: "string(steps.a.outputs.n == null)" }\n'
        'steps: [{ name: a, run: [echo], outputs: { n: "null" } },'
        ' { name: b, needs: [a], run: [echo, "{{ steps.a.outputs.n }}!"] }]'
    )
    assert ended.code == 0, ended.err
    assert ended.result["outputs"] == {"o": None, "t": "true"}
    assert ended.step("a")["outputs"] == {"n": None}
    assert ended.step("b")["stdout"] == "null!\n"


def test_a_cycle_of_files_is_found_by_validate(orun: Orun, tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(f"{HEAD}steps: [{{ name: y, workflow: ./w.yaml }}]")
    ended = orun("steps: [{ name: x, workflow: b.yaml }]", verb="validate")
    assert ended.code == 1
    assert "nested workflows form a cycle: w.yaml → b.yaml → ./w.yaml" in ended.err


def test_megabytes_of_short_lines_take_no_seconds(orun: Orun) -> None:
    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = cpu()
    ended = orun('steps: [{ name: a, run: [sh, -c, "yes 01234567 | head -c 4000000"] }]')
    assert ended.out.count("    a │ 01234567\n") > 440_000
    assert cpu() - before < 4, "start-up and all; a line at a time takes many times as long"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: [{ name: a, run: [x], timeout: -5s }]", "step a: timeout must be a positive duration"),
        ("steps: [{ name: a, run: [x], retry: { maxRetries: 1, baseDelay: -1s } }]", "must not be negative"),
        ("steps: [{ name: a, run: [x], poll: { interval: -1s, timeout: 1s, until: 'true' } }]", "positive duration"),
        ("steps: [{ name: a, action: sleep, with: { duration: -1s } }]", "must not be negative"),
        ("steps: [{ name: a, action: sleep, with: { duration: 1s, more: 1 } }]", "unknown with.more"),
        ("steps: [{ name: a, action: http.request, with: { body: x } }]", "with.url is required"),
        ("steps: [{ name: a, action: script, with: { source: [1] } }]", "with.source must be a text"),
        ("steps: [{ name: a, run: [x] }]\n---\nsteps: []\n", "document"),
        ("steps: [{ name: a, run: [\"{{ inputs['nope'] }}\"] }]", "references undeclared inputs.nope"),
        (
            "steps: [{ name: a, run: [x] }, { name: b, run: [\"{{ steps['a'].stdout }}\"] }]",
            "references steps.a, which",
        ),
        ("steps: [{ name: a, run: [\"{{ connections['c'].token }}\"] }]", "references undeclared connections.c"),
    ],
)
def test_validate_refuses_what_cannot_be_right(orun: Orun, text: str, said: str) -> None:
    ended = orun(text, verb="validate")
    assert ended.code == 1
    assert said in ended.err


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "action: http.request\n    with:\n      url: 'http://h/'\n      headers: { A: 1, B: '{{ {}.x }}' }",
            "with.headers.B (line 9)",
        ),
        (
            "action: script\n    with:\n      source: '1'\n      input: [1, { k: '{{ {}.x }}' }]",
            "with.input[1].k (line 9)",
        ),
        ("action: sleep\n    with: { duration: '{{ {}.x }}' }", "with.duration (line 7)"),
    ],
)
def test_a_value_of_an_action_is_named_with_its_line(orun: Orun, step: str, said: str) -> None:
    ended = orun(f"steps:\n  - name: a\n    {step}\n")
    assert ended.code == 1
    assert ended.step("a")["error"] == f"{said}: no such key: x"


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"

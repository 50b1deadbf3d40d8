"""The two examples of the reference, as written: an agent program does the work, a model judges it.

Every prompt of both is compared with a golden file. After a wanted change run this file with
FLOWSTONE_GOLDEN=write and look at the difference.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowstone.testing.model_server import Answer, ModelServer

GOLDEN = Path(__file__).parents[2] / "golden"
YES = json.dumps({"complete": True, "missing": [], "feedback": ""})
NO = json.dumps({"complete": False, "missing": ["a verdict for b.c"], "feedback": "Look at b.c again."})
PROGRAM = """#!{python}
import json, os, re, sys
words = sys.argv[1:]
prompt = words[words.index("--") + 1]
said = {{"model": words[words.index("--model") + 1] if "--model" in words else None, "cwd": os.getcwd()}}
unit = re.search(r"- Unit: (.*)", prompt)[1]
with open({log!r}, "a") as file:
    file.write(json.dumps({{"unit": unit, "prompt": prompt, **said}}) + "\\n")
item = re.search(r'"([a-z]\\.c)"', prompt.partition("## Item")[2].partition("##")[0])
answers = {{
    "discover": {{"files": ["a.c", "b.c"]}},
    "review": {{"file": item[1] if item else "?", "verdict": "pass"}},
    "aggregate": {{"verdict": "{verdict}"}},
}}
step = re.match(r"[a-z-]+", unit)[0]
text = json.dumps(answers[step]) if step in answers else "The work of " + step + " is done."
usage = {{"input_tokens": 100, "output_tokens": 20}}
print(json.dumps({{"type": "result", "result": text, "session_id": "s-" + step, "usage": usage}}))
"""


@pytest.fixture
def example(akm):
    """Runs an example in a repository; returns its envelope, what the agent was asked and what the judge."""

    def run(name, *flags, verdicts=(YES,), verdict="pass"):
        akm.write("bundle/workflows/w.md", (GOLDEN / "akm_markdown" / f"{name}.md").read_text())
        log = akm.folder / "log"
        program = akm.write("agent", PROGRAM.format(python=sys.executable, log=str(log), verdict=verdict))
        program.chmod(0o755)
        _repository(akm.folder / "project")
        with ModelServer([Answer(text) for text in verdicts]) as judge:
            akm.write("config/config.json", json.dumps(_configuration(str(program), judge.endpoint)))
            aliases = {"balanced": {"reviewer": "sonnet-x"}, "deep": {"reviewer": "opus-x"}}
            prices = {"sonnet-x": {"input": 3, "output": 15}, "opus-x": {"input": 5, "output": 25}}
            akm.write("config/models.json", json.dumps({"version": 1, "aliases": aliases, "prices": prices}))
            (akm.folder / "tmp").mkdir()
            envelope = akm.json("workflow", "run", "workflows/w", *flags, TMPDIR=str(akm.folder / "tmp"))
        asked = [json.loads(line) for line in log.read_text().splitlines()]
        return envelope, asked, judge.asked

    return run


def _configuration(program, endpoint):
    engines = {
        "reviewer": {"kind": "agent", "platform": "claude", "bin": program},
        "judge": {"kind": "llm", "endpoint": endpoint, "model": "j1"},
    }
    workflow = {"judgeEngine": "judge"}
    return {"configVersion": "0.9.0", "engines": engines, "defaults": {"engine": "reviewer"}, "workflow": workflow}


def _repository(folder):
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.invalid")
    for words in (("init", "-q", "."), ("commit", "-q", "--allow-empty", "-m", "c")):
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def compare(name, run_id, asked, judged):
    """Every prompt, by unit and then the judge's in order, against the golden file."""
    parts = [f"=== unit {call['unit']}, model {call['model']}\n{call['prompt']}" for call in asked]
    parts = sorted(parts, key=lambda part: part.partition("\n")[0])
    for place, call in enumerate(judged, 1):
        texts = "\n--- user\n".join(message["content"] for message in call.body["messages"])
        parts.append(f"=== judge, call {place}\n{texts}")
    text = "\n\n".join(parts).replace(run_id, "RUN") + "\n"
    path = GOLDEN / "examples" / f"{name}.txt"
    if os.environ.get("FLOWSTONE_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_the_minimal_example(akm, example):
    envelope, asked, judged = example("01_minimal", "--version", "1.2.3")
    assert envelope["run"]["status"] == "completed"
    assert [call["unit"] for call in asked] == ["validate:solo", "build:solo"]
    compare("minimal", envelope["run"]["id"], asked, judged)


def test_the_richer_example(akm, example):
    envelope, asked, judged = example("02_richer", "--changed_files", '["a.c", "b.c"]', verdicts=(YES, NO, YES))
    assert envelope["run"]["status"] == "completed"
    models = {call["unit"].partition(":")[0].partition(".")[0]: call["model"] for call in asked}
    assert models == {"discover": "sonnet-x", "review": "opus-x", "aggregate": "sonnet-x", "ship": "sonnet-x"}
    places = {call["cwd"] for call in asked if call["unit"].startswith("review.unit:")}
    assert len(places) == 4
    assert all(place.startswith(str(akm.folder / "tmp/akm-worktrees")) for place in places)
    assert not (akm.folder / "tmp/akm-worktrees" / envelope["run"]["id"]).exists()
    compare("richer", envelope["run"]["id"], asked, judged)
    status = akm.json("workflow", "status", envelope["run"]["id"], "--units")
    steps = {step["id"]: step for step in status["workflow"]["steps"]}
    assert [steps[name]["status"] for name in ("triage", "ship", "rework", "manual-triage")] == [
        "completed",
        "completed",
        "skipped",
        "skipped",
    ]
    assert steps["review"]["evidence"]["output"] == [
        {"file": "a.c", "verdict": "pass"},
        {"file": "b.c", "verdict": "pass"},
    ]


@pytest.mark.parametrize(("verdict", "chosen"), [("fail", "rework"), ("unclear", "manual-triage")])
def test_where_the_richer_example_goes_by_its_verdict(example, verdict, chosen):
    flags = ("--changed_files", '["a.c", "b.c"]')
    _, asked, _ = example("02_richer", *flags, verdicts=(YES, YES), verdict=verdict)
    assert [call["unit"] for call in asked][-1] == f"{chosen}:solo"

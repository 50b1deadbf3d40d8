"""Whole runs of commands, agents and models that echo secrets in every form: none is ever kept or shown.

Searched are the database and everything else in the data folder, the events, live lines and warnings
of the drive, and every view of the run. Secrets are random texts, JSON, multi-line texts and
prefixes of each other; they come by env assets, by secrets that these name, and as an engine's key.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flowstone.api import Flowstone
from flowstone.formats.akm_common.dialect import AkmDialect
from flowstone.redaction import MARK
from flowstone.testing.model_server import Answer, Asked, ModelServer
from flowstone.values import pretty_json

SOME = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
WORD = AkmDialect().word

ECHO = """\
import base64, json, os, sys
from urllib.parse import quote, quote_plus

plan = json.loads(open("plan.json").read())
item = json.loads(os.environ.get("AKM_ITEM", "0"))
forms = ["said"]
for name in ("S0", "S1", "S2", "S3"):
    value = os.environ.get(name)
    if value is None:
        continue
    raw = value.encode()
    forms += [value, json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(json.dumps({"k": value}))]
    forms += [quote(value), quote(value, safe=""), quote_plus(value), quote(value, safe="").replace("%2F", "%2f")]
    forms += [base64.b64encode(b"x" * n + raw + b"y").decode() for n in range(3)]
    forms += [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("="), "> " + value]
    forms += ["pre" + line + "post" for line in value.splitlines() if len(line.strip()) >= 8]
if plan["json"]:
    text = json.dumps({"text": forms, "keyed": {form: 1 for form in forms}, "n": item})
else:
    text = ("." * plan["filler"] + "|").join(forms) + "\\n"
data = text.encode()
stream = sys.stderr if plan["fails"] and not plan["json"] else sys.stdout
cut = plan["cut"] % (len(data) + 1)
for piece in (data[:cut], data[cut:]):
    stream.buffer.write(piece)
    stream.flush()
sys.exit(3 if plan["fails"] else 0)
"""
WORKFLOW = """\
---
type: workflow
description: d
params: { l: { type: array } }
steps:
  - id: a
    unit:
      exec: { command: [%s, echo.py] }
      env: [env/z]
      on_error: continue
      %s
  - id: m
    map:
      over: params.l
      unit: { exec: { command: [%s, echo.py] }, env: [env/z], on_error: continue }
  - id: g
    unit: { engine: agent, env: [env/z], on_error: continue %s }
  - id: q
    inputs: [steps.m.output]
    unit: { engine: model, on_error: continue, retry: { max: 1, on: [llm_invalid_json] } }
    gate: { max_loops: 2 }
---

# T

## a

Say it.

## m

Say it.

## g

Have it said.

## q

Ask it.

### gate

It is said.
"""

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\ud7ff", exclude_categories=["Cc", "Cs"]))
lines = st.lists(texts.filter(lambda text: len(text) >= 6), min_size=2, max_size=4).map("\n".join)
documents = st.dictionaries(st.sampled_from(["k", "token"]), texts.filter(lambda t: len(t) >= 9), min_size=1).map(
    json.dumps
)
one = st.one_of(texts.filter(lambda text: len(text) >= 6), lines, documents)


@st.composite
def secrets(draw: Any) -> list[str]:
    """Up to four values; one may be the beginning of another."""
    found = draw(st.lists(one, min_size=1, max_size=3, unique=True))
    longest = max(found, key=len)
    if len(longest) >= 12 and draw(st.booleans()):
        found.append(longest[: draw(st.integers(6, len(longest) - 1))])
    return [value for value in found if len(value.strip()) >= 6]


class Run:
    """A run in folders of its own that echoes some values; `seen` is all that can be seen of it."""

    def __init__(self, values: list[str], plan: dict[str, Any], answer: Any) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="leaks-"))
        self.values = values
        self.key = values[0].strip() if values and values[0].isascii() and values[0].isprintable() else "the-engine-key"
        names = ("config", "data", "state", "cache", "bundle", "project")
        for name in names:
            (self.folder / name).mkdir()
        self.env = {f"AKM_{name.upper()}_DIR": str(self.folder / name) for name in names[:5]}
        self.env |= {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "MODEL_KEY": self.key, "LANG": "C.UTF-8"}
        self._write(plan)
        self.watched: list[str] = []
        self.lines: list[str] = []
        try:
            with ModelServer(lambda asked: answer(self, asked)) as server:
                self._configure(server.endpoint)
                self._drive()
        finally:
            shutil.rmtree(self.folder)

    def _write(self, plan: dict[str, Any]) -> None:
        python = json.dumps(sys.executable)
        output = "output: { type: object }" if plan["json"] else ""
        (self.folder / "bundle/workflows").mkdir()
        typed = f", {output}" if output else ""
        (self.folder / "bundle/workflows/w.md").write_text(WORKFLOW % (python, output, python, typed))
        agent = self.folder / "project/agent"
        agent.write_text(f"#!/bin/sh\nexec {sys.executable} echo.py\n")
        agent.chmod(0o755)
        (self.folder / "bundle/env").mkdir()
        (self.folder / "bundle/secrets").mkdir()
        assigned = []
        for place, value in enumerate(self.values):
            if place == 1:
                (self.folder / "bundle/secrets/one").write_bytes(value.encode())
                assigned.append(f"S{place}=${{secret:one}}\n")
            else:
                assigned.append(f"S{place}={_double_quoted(value)}\n")
        (self.folder / "bundle/env/z.env").write_bytes("".join(assigned).encode())
        (self.folder / "project/echo.py").write_text(ECHO)
        (self.folder / "project/plan.json").write_text(json.dumps(plan))

    def _configure(self, endpoint: str) -> None:
        engine = {"kind": "llm", "endpoint": endpoint, "model": "m", "apiKey": "$MODEL_KEY"}
        agent = {"kind": "agent", "platform": "opencode", "bin": str(self.folder / "project/agent")}
        engines = {"model": engine, "agent": agent}
        config = {"engines": engines, "workflow": {"judgeEngine": "model"}, "configVersion": "0.9.0"}
        (self.folder / "config/config.json").write_text(json.dumps(config))

    def _drive(self) -> None:
        with Flowstone(str(self.folder / "project"), self.env) as flow:
            from flowstone.ports.dialect import Given

            given = Given(values={"l": [0, 1]})
            started = flow.start("workflows/w", given)
            report = flow.drive(started.run_id, given, observer=self, on_event=self._event, lines=True)
            self.watched += [*started.warnings, *report.warnings, *(done.summary for done in report.executed)]
            self.views = "\n\x1f\n".join(_views(flow, started.run_id))
            self.statuses = {step.id: step.status.value for step in report.state.order}
        self.files = b"".join(path.read_bytes() for path in sorted((self.folder / "data").rglob("*")) if path.is_file())
        self.files += b"".join(p.read_bytes() for p in sorted((self.folder / "state").rglob("*")) if p.is_file())

    @property
    def seen(self) -> str:
        told = [self.files.decode("utf-8", "replace"), self.views, *self.watched, "\n".join(self.lines)]
        return "\n\x1f\n".join(told)

    def _event(self, event: Any) -> None:
        import msgspec

        self.watched.append(pretty_json(msgspec.to_builtins(event)))

    def recorded(self, state: Any, events: Any) -> None: ...

    def line(self, step: str, unit: str, text: str) -> None:
        self.lines.append(text)

    def warned(self, text: str) -> None:
        self.watched.append(text)


def _views(flow: Flowstone, run: str) -> Iterator[str]:
    """Everything that the verbs print of a run."""
    from flowstone.views import overview
    from flowstone.views.log import LogQuery, LogSource, log_view
    from flowstone.views.report import report_page
    from flowstone.views.status import status_view
    from flowstone.views.why import why, why_lines

    view, now = flow.status(run), flow.wiring.clock.now_ms()
    yield report_page(view.row, view.state, now, WORD)
    yield pretty_json(status_view(view.row, view.state, WORD, now, units=True))
    yield pretty_json(overview.document(view.row, view.state, now, units=True))
    yield "\n".join(overview.text_lines(view.row, view.state, now, WORD, units=True))
    events = [event for _, _, event in flow.events(run)]
    for step in view.state.order:
        yield from why_lines(why(view.state, events, step.id))
    log = log_view(flow.events(run), LogSource(str, lambda run, event: True), LogQuery(), WORD, full=True)
    yield pretty_json(log)


def _double_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("$", "\\$")
    return f'"{escaped}"'


def forms_of(value: str) -> Iterator[str]:
    """The forms that decision 7 names: as it is, in JSON, in a URL, in base64, and its longer lines."""
    raw = value.encode()
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield base64.b64encode(raw).decode()
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
    yield from (line for line in value.splitlines() if len(line.strip()) >= 8)


def spellings(form: str) -> Iterator[str]:
    """A form as it stands in a text, and in one that was itself written as JSON or HTML."""
    from html import escape

    yield form
    yield json.dumps(form)[1:-1]
    yield json.dumps(form, ensure_ascii=False)[1:-1]
    yield escape(form)


def leaks(seen: str, values: list[str]) -> list[str]:
    return [form for value in values for form in forms_of(value) if any(spelt in seen for spelt in spellings(form))]


def echoing(run: Run, asked: Asked) -> Answer:
    """A model that says its key and what it was told; as a judge it is content at the second call."""
    if asked.body["messages"][0]["role"] == "system":
        return Answer(json.dumps({"complete": False, "missing": [*run.values], "feedback": f"no: {run.key}"}))
    said = "\n".join(f"{value} {json.dumps(value)} {quote(value, safe='')}" for value in (run.key, *run.values))
    return Answer(said, status=plan_status(len(said)))


def plan_status(number: int) -> int:
    return 400 if number % 5 == 0 else 200


PLANS = st.fixed_dictionaries(
    {
        "filler": st.sampled_from([0, 7, 1_490, 1_990, 3_990, 65_520]),
        "cut": st.integers(0, 400_000),
        "fails": st.booleans(),
        "json": st.booleans(),
    }
)


def test_the_search_finds_what_leaks():
    """The control: values that nobody knows as secrets are found in every place that is searched."""
    quiet = Run([], {"filler": 0, "cut": 0, "fails": False, "json": False}, lambda run, asked: Answer("a plain answer"))
    assert quiet.statuses == {"a": "succeeded", "m": "succeeded", "g": "succeeded", "q": "held"}
    assert "a plain answer" in quiet.files.decode("utf-8", "replace")
    assert "a plain answer" in quiet.views
    assert leaks(quiet.seen, ["plain ans"]) != []


@SOME
@given(secrets(), PLANS)
def test_no_secret_is_ever_kept_or_shown(values, plan):
    assume(values)
    assume(not leaks(_usual(), values))
    run = Run(values, plan, echoing)
    assert leaks(run.seen, [*run.values, run.key]) == []
    assert MARK in run.seen


@cache
def _usual() -> str:
    """What stands in any run: a secret that is a word of it cannot be told from it."""
    return Run([], {"filler": 0, "cut": 0, "fails": True, "json": False}, lambda run, asked: Answer("an answer")).seen

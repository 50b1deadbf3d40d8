"""How orun words a run: ids, grants of connections, secrets, and the documented files."""

from __future__ import annotations

import json

import pytest

from flowstone.errors import InputError
from flowstone.formats.orun.compile import compile_orun
from flowstone.formats.orun.dialect import OrunDialect
from flowstone.plan.model import Plan
from flowstone.ports.dialect import Given
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    RunClosed,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.state import State
from flowstone.source.file import SourceText, text_of

SOURCE = """apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: ship }
inputs: { tok: { type: string, secret: true }, n: { type: number, default: 1 } }
connections: { gh: { type: http.bearer } }
outputs: { v: "steps.a.outputs.v" }
steps:
  - name: a
    run: [x]
    outputs: { v: "1" }
  - name: b
    needs: [a]
    action: http.request
    connection: gh
    with: { url: "http://x.test/" }
"""
DIALECT = OrunDialect()


def plan() -> Plan:
    def load(path: str) -> SourceText:
        raise AssertionError(path)

    found = compile_orun("w.yaml", text_of(SOURCE.encode(), "w.yaml"), load).plan
    assert found is not None
    return found


def test_a_run_is_named_after_the_workflow_and_the_time():
    assert DIALECT.run_id(plan(), "fresh", 1700000000123456789) == "ship-1700000000123456789"


def test_secret_inputs_are_used_and_not_kept():
    resolved = DIALECT.resolve(plan(), Given(texts=(("tok", "s3cret"), ("n", "2"))))
    assert resolved.params == {"tok": "s3cret", "n": 2}
    assert resolved.stored == {"n": 2}
    assert resolved.secrets == ("s3cret",)


def test_grants():
    granted = Given(connections={"gh": {"bearerToken": "t"}})
    assert DIALECT.connections(plan(), granted) == {"gh": {"bearerToken": "t"}}
    for connections, words in (
        ({}, 'step b: connection "gh" was not granted (--connection gh.bearerToken=...)'),
        ({"gh": {"password": "x"}}, 'http.bearer has no field "password" (bearerToken, token)'),
        ({"gh": {"token": "x"}, "zz": {"token": "x"}}, 'connection grant "zz": workflow declares no such connection'),
    ):
        with pytest.raises(InputError) as caught:
            DIALECT.connections(plan(), Given(connections=connections))
        assert words in caught.value.message


def test_the_words_for_statuses():
    assert [DIALECT.word(status) for status in ("succeeded", "upstream_failed", "skipped", "open")] == [
        "succeeded",
        "blocked",
        "skipped",
        "running",
    ]


def test_the_documented_files_follow_the_run():
    state = State("ship-1", plan())

    def files(*events: object) -> dict[str, object]:
        for event in events:
            fold(state, event)  # type: ignore[arg-type]
        return {path: json.loads(data) for path, data in DIALECT.projection.files(state, events)}  # type: ignore[arg-type]

    assert files(DriverStarted(1_700_000_000_500, "d"))["metadata.json"] == {
        "workflow": "ship",
        "digest": f"sha256:{state.plan.source.digest}",
        "startedAt": "2023-11-14T22:13:20.500Z",
    }
    bad = Outcome(Reason.NON_ZERO_EXIT, error="run: x exited 3", exit_code=3, stdout="o", stderr="é")
    assert files(StepOpened("a", 2), AttemptStarted("a", "a:solo", 3, "h")) == {}
    found = files(
        AttemptEnded("a", "a:solo", 4, bad),
        StepClosed("a", 5, Status.FAILED, error="run: x exited 3"),
        StepClosed("b", 6, Status.UPSTREAM_FAILED, error="an upstream step failed"),
    )
    assert list(found["steps/a.json"].items()) == [
        ("name", "a"),
        ("status", "failed"),
        ("exitCode", 3),
        ("stdout", "o"),
        ("stderr", "é"),
        ("error", "run: x exited 3"),
        ("attempts", 1),
    ]
    assert found["steps/b.json"] == {"name": "b", "status": "blocked", "error": "an upstream step failed"}
    closed = files(RunClosed(7, RunStatus.FAILED, outputs={"v": 1}))
    assert closed == {"result.json": {"status": "failed", "outputs": {}}}
    assert set(files()) == {"metadata.json", "steps/a.json", "steps/b.json", "result.json"}

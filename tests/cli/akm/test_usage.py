"""What models used and what it costs, in every output of a run's status; the warning before a budget is spent."""

import json

import pytest

from flowstone.testing.model_server import Answer, ModelServer

WORKFLOW = """---
type: workflow
description: d
params: { l: { type: array } }
budget: { max_tokens: 70, max_units: 100 }
steps:
  - id: a
  - id: m
    map: { over: params.l, unit: { model: other } }
---

# T

## a

Do a.

### gate

It is done.

## m

Do m.
"""
YES = json.dumps({"complete": True, "missing": [], "feedback": ""})


@pytest.fixture
def used(akm):
    """A run of three units and a judge, whose first model has a price; returns its envelope."""

    def run(prices=None, usage=None):
        akm.write("bundle/workflows/w.md", WORKFLOW)
        told = {} if usage is None else {"usage": usage}
        with ModelServer(lambda asked: Answer(YES if "verdict" in asked.prompt else "done", **told)) as server:
            engine = {"kind": "llm", "endpoint": server.endpoint, "model": "m1"}
            config = {"engines": {"e": engine}, "defaults": {"engine": "e"}, "workflow": {"judgeEngine": "e"}}
            akm.write("config/config.json", json.dumps({"configVersion": "0.9.0", **config}))
            if prices is not None:
                akm.write("config/models.json", json.dumps({"version": 1, "prices": prices}))
            return akm("workflow", "run", "workflows/w", "--l", "[1,2]")

    return run


def test_usage_of_units_steps_and_the_run(akm, used):
    done = used({"M1": {"input": 1_000_000, "output": 2_000_000}})
    envelope = json.loads(done.stdout)
    assert envelope["usage"] == {
        "tokens": 60,
        "inputTokens": 40,
        "outputTokens": 20,
        "costUsd": 40.0,
        "costPartial": True,
    }
    assert envelope["warnings"] == ["budget: 60 of 70 tokens used (85 % of max_tokens)"]
    assert "warning: budget: 60 of 70" in done.stderr.lower()
    run = envelope["run"]["id"]
    status = akm.json("workflow", "status", run, "--units")
    assert status["usage"] == envelope["usage"]
    assert status["budget"] == {"maxUnits": {"limit": 100, "used": 3}, "maxTokens": {"limit": 70, "used": 60}}
    assert status["warnings"] == envelope["warnings"]
    first, second = status["workflow"]["steps"]
    assert (first["usage"]["tokens"], first["usage"]["costUsd"]) == (30, 40.0)
    assert second["usage"] == {"tokens": 30, "inputTokens": 20, "outputTokens": 10}
    rows = {unit["unitId"]: unit for unit in status["units"]}
    assert rows["a:solo"]["usage"] == {"tokens": 15, "inputTokens": 10, "outputTokens": 5, "costUsd": 20.0}
    assert rows["a.gate:l1"]["usage"]["costUsd"] == 20.0
    assert sum("usage" in row for row in rows.values()) == 4


def test_usage_in_text_and_on_the_page(akm, used):
    run = json.loads(used({"m1": {"input": 3, "output": 15}}).stdout)["run"]["id"]
    text = akm("workflow", "status", run, "--units", "--format", "text").stdout
    assert "  used 60 tokens (40 in, 20 out), at least $0.00021" in text
    assert "a  completed  30 tokens (20 in, 10 out), $0.00021" in text
    assert "a:solo  completed    15 tokens (10 in, 5 out), $0.00011" in text
    page = akm("workflow", "status", run, "--units", "--format", "html").stdout
    assert "<dt>Used</dt><dd>60 tokens (40 in, 20 out), at least $0.00021</dd>" in page
    assert "budget: 60 of 70 tokens used" in page
    plain = akm._run("flowstone", "status", run, "--units").stdout
    assert "  used  60 tokens (40 in, 20 out), at least $0.00021" in plain
    assert "  warning: budget: 60 of 70 tokens used (85 % of max_tokens)" in plain
    assert "asked: " in plain
    document = json.loads(akm._run("flowstone", "status", run, "--units", "--json").stdout)
    assert document["usage"]["tokens"] == 60
    assert document["steps"][0]["unitRows"][0]["usage"]["costUsd"] == 0.000105
    assert document["steps"][0]["unitRows"][0]["exchange"][0]["answer"] == "done"


def test_without_a_price_no_money_is_shown(akm, used):
    run = json.loads(used().stdout)["run"]["id"]
    text = akm("workflow", "status", run, "--units", "--format", "text").stdout
    assert "used 60 tokens (40 in, 20 out)\n" in text
    assert "$" not in text
    assert "cost" not in akm("workflow", "status", run, "--units").stdout.lower()


def test_a_price_that_is_none_is_refused_before_anything_runs(akm, used):
    done = used({"m1": {"input": "3"}})
    assert done.returncode == 78
    assert "prices.m1 must be an object with exactly input and output" in done.stderr
    assert akm.json("workflow", "list")["runs"] == []


def test_a_run_without_models_tells_of_no_usage(akm):
    akm.workflow("w", ("a", "true"))
    run = akm.json("workflow", "run", "workflows/w")["run"]["id"]
    assert "usage" not in akm("workflow", "status", run, "--units").stdout
    assert "used" not in akm._run("flowstone", "status", run).stdout

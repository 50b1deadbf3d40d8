"""The log: documented types, in order, with ids and without content (akm facts 23)."""

from flowstone.formats.akm_common.dialect import AkmDialect
from flowstone.plan.units import EnvRef, LiteralEnv
from flowstone.run.events import RunAbandoned
from flowstone.testing.plans import route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from flowstone.views.log import LogQuery, LogSource, log_view
from tests.driving import RUN, Bench, bad, driven, ok

WORD = AkmDialect().word


def log(bench, query=None, **options):
    events = [(entry.seq, RUN, entry.event) for entry in bench.store.read(RUN)]
    first = events[0][2]
    source = LogSource(lambda run: "b//workflows/w", lambda run, event: event is first)
    return log_view(events, source, query or LogQuery(), WORD, **options)


def types(bench, **options):
    return [entry["eventType"] for entry in log(bench, **options)["events"]]


def test_order_of_a_run():
    bench = driven(spine(solo("a")), Script().on("a", ok("secret")))
    assert types(bench) == [
        "workflow_started",
        "workflow_unit_started",
        "workflow_unit_finished",
        "workflow_step_completed",
        "workflow_finished",
    ]
    assert "secret" not in str(log(bench, full=True))


def test_started_once_though_driven_twice():
    bench = Bench(spine(solo("a"), solo("b")))
    bench.drive(max_steps=1)
    bench.drive()
    assert types(bench).count("workflow_started") == 1


def test_failed_run_has_no_finish():
    bench = driven(spine(solo("a")), Script().on("a", bad()))
    found = log(bench, full=True)["events"]
    assert found[-1]["eventType"] == "workflow_step_updated"
    assert found[-1]["metadata"] == {"runId": RUN, "stepId": "a", "status": "failed"}
    assert found[2]["metadata"]["failureReason"] == "non_zero_exit"


def test_skip_is_an_update():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b", "y": "c"}), solo("b"), solo("c"))
    bench = driven(plan, Script().on("a", ok("x")))
    assert types(bench)[-2:] == ["workflow_step_updated", "workflow_finished"]


def test_abandoned():
    source = LogSource(lambda run: "w", lambda run, event: False)
    shown = log_view([(7, RUN, RunAbandoned(1))], source, LogQuery(), WORD)
    assert shown["events"][0] == {"eventType": "workflow_abandoned", "ref": "w", "ts": "1970-01-01T00:00:00.001Z"}
    assert shown["nextOffset"] == 7


def test_short_and_full_entries():
    bench = driven(spine(solo("a")))
    assert set(log(bench)["events"][0]) == {"eventType", "ref", "ts"}
    assert set(log(bench, full=True)["events"][0]) == {"eventType", "ref", "ts", "id", "metadata"}


def test_filters():
    bench = driven(spine(solo("a"), solo("b")))
    assert log(bench, LogQuery(type="workflow_step_completed"))["totalCount"] == 2
    assert log(bench, LogQuery(ref="workflows/w"))["totalCount"] == log(bench)["totalCount"]
    assert log(bench, LogQuery(ref="workflows/v"))["events"] == []
    assert log(bench, LogQuery(since=2**50))["events"] == []
    recent = log(bench, LogQuery(limit=1))
    assert [entry["eventType"] for entry in recent["events"]] == ["workflow_finished"]
    assert recent["totalCount"] > 1
    assert log(bench, run=RUN)["run"] == RUN


def test_an_attempt_that_binds_an_env_asset_tells_which_names_it_reads():
    bench = driven(spine(solo("a")), Script().on("a", ok("v")))
    events = [(entry.seq, RUN, entry.event) for entry in bench.store.read(RUN)]
    bound = (LiteralEnv("L", "literal"), EnvRef("b//env/z", ("K",), ("tok",), "b"), EnvRef("env/unknown"))
    source = LogSource(lambda run: "b//workflows/w", lambda run, event: False, lambda run, step: bound)
    shown = log_view(events, source, LogQuery(), WORD, full=True)["events"]
    kinds = [entry["eventType"] for entry in shown]
    assert kinds[:3] == ["workflow_unit_started", "env_access", "workflow_unit_finished"]
    assert shown[1]["metadata"] == {
        "runId": RUN,
        "stepId": "a",
        "unitId": "a:solo",
        "envRef": "b//env/z",
        "keys": ["K"],
        "secretNames": ["tok"],
    }
    assert log_view(events, source, LogQuery(type="env_access"), WORD)["totalCount"] == 1

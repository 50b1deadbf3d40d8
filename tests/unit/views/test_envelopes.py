"""The envelopes of run, plan, show and lint (akm facts 21.3 and 24)."""

import msgspec

from flowstone.diagnostics import Diagnostic, Place, Severity
from flowstone.expr.model import Template
from flowstone.formats.akm_common.dialect import AkmDialect
from flowstone.freeze.frozen import freeze
from flowstone.plan.model import Budget, Param, Unit
from flowstone.plan.units import ExecSpec, LiteralEnv, PassEnv
from flowstone.ports.catalog import EngineConfig
from flowstone.testing.plans import command, export, fan_out, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from flowstone.views.envelope import run_envelope, skipped_envelope
from flowstone.views.lint import Linted, lint_view
from flowstone.views.plan import PlanOrigin, plan_view
from flowstone.views.show import Shown, show_view
from tests.driving import Bench, bad, ok

WORD = AkmDialect().word
SHOWN = Shown("b//workflows/w", "w", "b", "/b/workflows/w.md", True)


def envelope(bench, report, **options):
    return run_envelope(report.row.record, report.state, report.executed, WORD, bench.clock.now_ms(), **options)


def ran(plan, script=None, **options):
    bench = Bench(plan, script)
    return bench, bench.drive(**options)


def test_run_that_completed():
    shown = envelope(*ran(spine(solo("a"), outputs=(export("n", "steps.a.output"),)), Script().on("a", ok("v"))))
    assert (shown["ok"], shown["done"], shown["stepsProcessed"]) == (True, True, 1)
    assert shown["run"]["status"] == "completed"
    assert shown["run"]["outputs"] == {"n": "v"}
    assert shown["executed"][0] == {
        "stepId": "a",
        "ok": True,
        "unitCount": 1,
        "failedUnits": 0,
        "summary": 'Executed 1 unit(s) for step "a" via workflow orchestration: 1 succeeded, 0 failed.',
    }
    assert (shown["shape"], shown["schemaVersion"]) == ("workflow-run", 1)
    assert not {"aborted", "timedOut", "warnings", "resumed"} & set(shown)


def test_run_that_failed():
    shown = envelope(*ran(spine(solo("a"), solo("b")), Script().on("a", bad())))
    assert (shown["ok"], shown["run"]["status"], shown["run"]["currentStepId"]) == (False, "failed", "a")
    assert (shown["executed"][0]["ok"], shown["executed"][0]["failedUnits"]) == (False, 1)
    assert "done" not in shown


def test_every_retry_is_an_entry():
    script = Script().on("a", bad(), attempt=0)
    shown = envelope(*ran(spine(solo("a")), script, max_retries=2))
    assert [entry["ok"] for entry in shown["executed"]] == [False, False, False]
    assert shown["stepsProcessed"] == 3


def test_skips_are_entries_that_cost_no_step():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b", "y": "c"}), solo("b"), solo("c"))
    shown = envelope(*ran(plan, Script().on("a", ok("x"))))
    assert [(e["stepId"], e["ok"], e["unitCount"]) for e in shown["executed"]] == [
        ("a", True, 1),
        ("r", True, 0),
        ("b", True, 1),
        ("c", True, 0),
    ]
    assert shown["stepsProcessed"] == 3


def test_interruptions():
    bench, report = ran(spine(solo("a"), solo("b")), max_steps=1)
    shown = envelope(bench, report, cause="timeout", resumed=True, warnings=["w"])
    assert (shown["aborted"], shown["timedOut"], shown["resumed"], shown["warnings"]) == (True, True, True, ["w"])
    assert envelope(bench, report, cause="signal:SIGINT")["timedOut"] is False


def test_skipped():
    assert skipped_envelope("lock-held", "m")["skipped"] == {"reason": "lock-held", "message": "m"}


def planned():
    env = (LiteralEnv("TOKEN", "hidden"), PassEnv("HOME2"))
    unit = Unit(ExecSpec(("sh", "-c", "hidden-command"), env=env))
    plan = spine(
        solo("a", unit=unit),
        fan_out("m", "steps.a.output"),
        route("r", "steps.a.output", {"x": "b"}, "c"),
        solo("b", schema={"type": "object"}, has_schema=True),
        solo("c"),
        budget=Budget(max_units=9),
        params=(Param("p", {"type": "string"}),),
        outputs=(export("z", "steps.a.output"), export("n", "steps.b.output.n", {"type": "integer"})),
    )
    frozen = freeze(plan, EngineConfig())
    return plan_view(frozen.plan, frozen.hash, PlanOrigin("w", "akm-markdown", "w.md"), lambda path: path)


def test_plan():
    shown = planned()
    assert (shown["ok"], shown["published"], shown["irVersion"]) == (True, False, 5)
    assert (shown["budget"], shown["params"]) == ({"maxUnits": 9}, ["p"])
    assert list(shown["outputs"]) == ["n", "z"]
    assert shown["outputs"]["n"] == {"from": "steps.b.output.n", "schema": {"type": "integer"}}
    assert [step["kind"] for step in shown["steps"]] == ["unit", "map", "route", "unit", "unit"]
    assert [step.get("targetKind") for step in shown["steps"]] == ["shell", "shell", None, "shell", "shell"]
    assert shown["steps"][1]["concurrency"] == 4
    assert shown["steps"][2]["route"] == {"input": "steps.a.output", "when": {"x": "b"}, "default": "c"}
    assert shown["steps"][3]["outputSchema"] == {"type": "object"}
    assert shown["steps"][0]["gate"] == {"criteria": [], "maxLoops": 1, "judgeEngine": None}
    assert shown["steps"][0]["environment"] == [
        {"kind": "literal", "name": "TOKEN"},
        {"kind": "pass-through", "name": "HOME2"},
    ]


def test_plan_hides_values_and_commands():
    assert "hidden" not in str(planned())


def test_show_exec_step():
    spec = ExecSpec(("echo", Template(("a",))), cwd="sub", env=(PassEnv("CARGO_HOME"),))
    unit = Unit(spec, timeout_ms=600_000, timeout_set=True)
    plan = msgspec.structs.replace(spine(solo("a", unit=unit, instructions="Do a.")), preamble="Words.")
    shown = show_view(plan, SHOWN, None, WORD)
    assert (shown["type"], shown["name"], shown["ref"], shown["origin"]) == ("workflow", "w", "b//workflows/w", "b")
    assert shown["content"] == "Words."
    assert "activeRun" not in shown
    assert shown["steps"] == [
        {
            "id": "a",
            "title": "a",
            "instructions": "Do a.",
            "sequenceIndex": 0,
            "orchestration": {
                "timeoutMs": 600_000,
                "exec": {"command": ["echo", "a"], "cwd": "sub", "passEnv": ["CARGO_HOME"]},
            },
        }
    ]


def test_show_map_params_and_active_run():
    bench = Bench(spine(solo("a")))
    plan = spine(
        fan_out("m", "params.xs", width=3, unit=command("x")),
        params=(Param("xs", {"type": "array", "description": "Files"}),),
    )
    shown = show_view(plan, SHOWN, bench.store.load("run-00000001"), WORD)
    assert shown["workflowParameters"] == [{"name": "xs", "description": "Files"}]
    assert shown["steps"][0]["orchestration"]["fanOut"] == {"over": "params.xs", "reducer": "collect", "concurrency": 3}
    assert shown["activeRun"]["runId"] == "run-00000001"


def test_lint():
    wrong = Diagnostic("unknown-key", 'Unknown key "foo".', Place(5, 1), "Remove it.")
    doubt = Diagnostic("undeclared-param", "params.x", Place(7, 3), severity=Severity.WARNING)
    shown = lint_view(
        [Linted("workflows/a.md", (wrong, doubt), undated=True), Linted("workflows/b.md", (), True, True)]
    )
    assert shown["summary"] == {"fixed": 1, "flagged": 2, "warnings": 1}
    assert shown["flagged"][0] == {
        "file": "workflows/a.md",
        "issue": "invalid-workflow-structure",
        "code": "unknown-key",
        "detail": 'Unknown key "foo". Remove it.',
        "fixed": False,
        "line": 5,
        "column": 1,
    }
    assert shown["flagged"][1]["issue"] == "missing-updated"
    assert "line" not in shown["flagged"][1]
    assert (shown["fixed"][0]["file"], shown["fixed"][0]["fixed"]) == ("workflows/b.md", True)
    assert shown["warnings"][0]["issue"] == "workflow-warning"


def test_lint_counts_what_it_hides():
    many = tuple(Diagnostic("c", f"m{line}", Place(line)) for line in range(1, 61))
    flagged = lint_view([Linted("f.md", many)])["flagged"]
    assert len(flagged) == 51
    assert "10 more of 60" in flagged[-1]["detail"]

"""What reaches a terminal, a pipe and a log."""

import asyncio
import io
import json

import pytest

from flowstone.cli.render.formats import Detail, Format, Output, as_json, as_json_lines, emit
from flowstone.cli.render.lines import OrunLines, PlainLines, summary
from flowstone.cli.render.live import LiveView, picture, visible
from flowstone.cli.render.terminal import Terminal, neutral, one_line, say, terminal_of
from flowstone.expr.model import Literal, Reference
from flowstone.plan.model import FanOut, Plan, Single, Step, Unit
from flowstone.plan.model import Output as PlanOutput
from flowstone.plan.units import ExecSpec
from flowstone.ports.observer import ChildObserver
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    RunClosed,
    RunInterrupted,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import State
from flowstone.views.progress import elapsed_text, orun_end

PLAIN = Terminal(live=False, colour=False, width=80)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain é 漢 🙂\tx\n", "plain é 漢 🙂\tx\n"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x07\x7f\x9b", "a\\x0db\\x07\\x7f\\x9b"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("a\u2028b\ud800", "a\\u2028b\\ud800"),
        ("no\u00a0break", "no\u00a0break"),
    ],
)
def test_untrusted_text_is_made_harmless(text, safe):
    assert neutral(text) == safe


def test_one_line_is_one_line():
    assert one_line("a\nb\tc") == "a b c"


def test_a_pipe_is_plain():
    assert terminal_of(io.StringIO()) == PLAIN
    assert PLAIN.paint("x", "31") == "x"
    assert Terminal(True, True, 80).paint("x", "31") == "\x1b[31mx\x1b[0m"


def test_what_an_encoding_lacks_is_spelt_out():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    say("✕ é\n", stream)
    assert raw.getvalue() == b"x \\xe9\n"


def test_json_is_safe_for_terminals_and_still_json():
    value = {"a": "\x1b\x9b\u202e\ud800é"}
    text = as_json(value)
    assert neutral(text) == text
    assert json.loads(text) == value


def test_json_lines_are_the_rows_of_a_list():
    assert as_json_lines({"runs": [{"id": 1}, {"id": 2}], "shape": "x"}) == '{"id":1}\n{"id":2}\n'
    assert as_json_lines({"run": {"id": 1}, "executed": []}) == '{"run":{"id":1},"executed":[]}\n'


def test_brief_leaves_bulk_out(capsys):
    envelope = {"steps": [{"id": "a", "instructions": "long", "evidence": {}}]}
    emit(envelope, Output(detail=Detail.BRIEF))
    assert json.loads(capsys.readouterr().out) == {"steps": [{"id": "a"}]}


def test_text_markdown_and_html_are_generic(capsys):
    envelope = {"run": {"id": "r\x1b", "done": True, "at": None}, "rows": [{"a": 1, "b": "x\ny"}, {"a": 2}], "none": []}
    emit(envelope, Output(Format.TEXT))
    assert capsys.readouterr().out == (
        "run:\n  id: r\\x1b\n  done: yes\n  at: none\nrows:\n  - a: 1\n    b:\n      x\n      y\n  - a: 2\nnone: none\n"
    )
    emit(envelope, Output(Format.MD))
    assert "## run\n\n- **id**: r\\x1b" in capsys.readouterr().out
    emit({"shape": "<b>"}, Output(Format.HTML))
    assert "&lt;b&gt;" in capsys.readouterr().out


def unit():
    return Unit(spec=ExecSpec(argv=("true",)))


def plan():
    over = Reference("params.xs", "params", "xs")
    return Plan(
        dialect="orun",
        name="flow",
        steps=(Step("build", Single(unit())), Step("fan", FanOut(over, unit()))),
        outputs=(PlanOutput("b", Literal(1)), PlanOutput("a", Literal(1))),
    )


class Told:
    """A run whose events are folded and told one by one."""

    def __init__(self, observer):
        self.state = State("flow-1", plan())
        self.observer = observer

    def tell(self, *events):
        for event in events:
            fold(self.state, event)
        self.observer.recorded(self.state, events)


def story(observer):
    told = Told(observer)
    told.tell(DriverStarted(0, "pid 1"), StepOpened("build", 0), AttemptStarted("build", "build:solo", 0, "h"))
    observer.line("build", "build:solo", "hello \x1b[31m\tworld")
    told.tell(AttemptEnded("build", "build:solo", 1500, Outcome()), StepClosed("build", 1500, Status.SUCCEEDED))
    told.tell(StepOpened("fan", 1500, count=2), AttemptStarted("fan", "fan.unit:1", 1500, "h"))
    told.tell(AttemptEnded("fan", "fan.unit:1", 9000, failed(Reason.NON_ZERO_EXIT, "exited 3\nbecause")))
    told.tell(StepClosed("fan", 9000, Status.FAILED, error="exited 3\nbecause"))
    observer.warned("careful")
    told.tell(RunClosed(9000, RunStatus.FAILED, {"a": "x", "b": [1]}))
    return told.state


def test_plain_lines():
    out = io.StringIO()
    lines = PlainLines(out, str)
    state = story(lines)
    lines.close()
    assert out.getvalue().splitlines() == [
        "build: started",
        "build:solo │ hello \\x1b[31m\tworld",
        "build: succeeded in 1.5s",
        "fan: started, 2 units",
        "fan.unit:1: exited 3 because",
        "fan: failed in 7.5s: exited 3 because",
        "warning: careful",
    ]
    assert summary(state, str, PLAIN) == [
        "  build  succeeded    1.5s",
        "  fan    failed       7.5s  1/2 units",
        "      ✕ exited 3 because",
        "run flow-1: failed in 9.0s",
        "  a = x",
        "  b = [1]",
    ]


def test_a_wide_fan_out_is_counted_now_and_then():
    out = io.StringIO()
    lines = PlainLines(out, str)
    told = Told(lines)
    told.tell(DriverStarted(0, "pid 1"), StepOpened("fan", 0, count=100))
    for index in range(100):
        unit_id = f"fan.unit:{index}"
        told.tell(AttemptStarted("fan", unit_id, index * 100, "h", index=index))
        told.tell(AttemptEnded("fan", unit_id, index * 100 + 50, Outcome(), index=index))
    told.tell(RunInterrupted(10_000, "signal:SIGINT"))
    assert out.getvalue().count("/100 units") == 1
    assert out.getvalue().endswith("stopped: signal:SIGINT\n")


def test_orun_lines_as_documented():
    out = io.StringIO()
    lines = OrunLines(out, {"succeeded": "succeeded", "failed": "failed"}.__getitem__)
    state = story(lines)
    lines.close()
    assert out.getvalue().splitlines() == [
        "  ▸ build",
        "    build │ hello \\x1b[31m\tworld",
        "  - build: succeeded",
        "  ▸ fan",
        "  - fan: failed",
        "      ✕ exited 3",
        "        because",
        "  ! careful",
    ]
    assert list(orun_end("f.yaml", state, str)) == [
        "workflow f.yaml: failed (exec flow-1)",
        "  b = [1]",
        "  a = x",
    ]


def test_lines_wait_for_each_other_and_no_longer():
    out = io.StringIO()

    async def busy():
        lines = PlainLines(out, str)
        for number in range(3):
            lines.line("s", "u", str(number))
        assert out.getvalue() == ""
        await asyncio.sleep(0.1)

    asyncio.run(busy())
    assert out.getvalue() == "u │ 0\nu │ 1\nu │ 2\n"


def test_a_log_that_cannot_be_written_never_stops_a_run():
    with open("/dev/full", "w") as full:
        story(PlainLines(full, str))
    assert full.closed


def test_the_live_view_draws_and_leaves_the_summary():
    out = io.StringIO()
    view = LiveView(out, str, Terminal(live=True, colour=False, width=80))
    story(view)
    view.close()
    view.close()
    text = out.getvalue()
    assert "build:solo │ hello \\x1b[31m world" in text
    assert "1/2 steps" in text
    assert text.endswith("run flow-1: failed in 9.0s\n  a = x\n  b = [1]\n")
    assert "\x1b[31mhello" not in text


def test_the_live_view_shows_what_runs_when_not_all_fits():
    steps = tuple(Step(f"s{number}", Single(unit())) for number in range(100))
    state = State("r", Plan(dialect="orun", name="f", steps=steps))
    fold(state, StepOpened("s70", 0))
    shown = [name for name, _ in visible([(step.id, step) for step in state.order], 5)]
    assert shown == ["s68", "s69", "s70", "s71", "s72"]


def test_the_live_view_shows_the_steps_of_nested_workflows_while_they_run():
    from rich.console import Console

    top = State("r", Plan(dialect="orun", name="f", steps=(Step("a", Single(unit())), Step("b", Single(unit())))))
    mid = State("c", Plan(dialect="orun", name="g", steps=(Step("m", Single(unit())),)))
    leaf = State("d", Plan(dialect="orun", name="h", steps=(Step("x", Single(unit())),)))
    for state, step in ((top, "a"), (mid, "m"), (leaf, "x")):
        fold(state, DriverStarted(0, "pid 1"))
        fold(state, StepOpened(step, 0))
    below = {"a": mid, "a/m": leaf}
    assert _drawn(top, below, Console(width=60, height=20)) == ["a", "a/m", "a/m/x", "b"]
    fold(mid, StepClosed("m", 5, Status.SUCCEEDED))
    assert _drawn(top, below, Console(width=60, height=20)) == ["a", "a/m", "b"]
    fold(top, StepClosed("a", 6, Status.SUCCEEDED))
    assert _drawn(top, below, Console(width=60, height=20)) == ["a", "b"]


def _drawn(state, below, console):
    table, _ = picture(state, str, console, 10, below).renderables
    return [str(cell) for cell in table.columns[1].cells]


def test_the_live_view_is_told_of_nested_runs_by_the_driver():
    assert issubclass(LiveView, ChildObserver)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0s"),
        (-5, "0.0s"),
        (340, "0.3s"),
        (9_940, "9.9s"),
        (42_000, "42s"),
        (184_000, "3m04s"),
        (7_500_000, "2h05m"),
    ],
)
def test_spans_of_time(ms, text):
    assert elapsed_text(ms) == text

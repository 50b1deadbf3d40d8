"""The page of a run: whole in itself, harmless whatever commands printed, and small."""

from html.parser import HTMLParser

import pytest

from flowstone.run.events import RunStatus, Status
from flowstone.run.outcome import Reason
from flowstone.testing.plans import dag, fan_out, route, solo, spine
from flowstone.views.report import report_page
from tests.unit.views.journals import (
    T0,
    bad,
    broke,
    closed,
    driver,
    ended,
    good,
    opened,
    ran,
    row_of,
    run_closed,
    started,
    state_of,
)

EVIL = "<script>alert(1)</script>\"'&"


def page_of(plan, events, **fields):
    state = state_of(plan, events)
    return report_page(row_of(plan, state, **fields), state, T0 + 60_000)


class Checker(HTMLParser):
    """Collects what a page loads, and whether its elements nest."""

    VOID = ("meta", "br")

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [
            value for name, value in attrs if name in ("src", "href", "xlink:href") and not value.startswith("#")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert checker.loads == []
    assert "script" not in checker.tags
    return checker


def test_the_page_holds_everything_and_loads_nothing():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b"}), solo("b"))
    detail = {"route": {"input": "steps.a.output", "value": "x", "selected": "b"}}
    events = [
        driver(),
        *ran("a", 0, 10, "x"),
        closed("r", 10, artifact=detail, detail=detail),
        *broke("b", 10, 400, "exited 7", "the very cause"),
        run_closed(400, RunStatus.FAILED, error="exited 7"),
    ]
    page = page_of(plan, events, params={"version": "1.10"})
    text = "".join(checked(page).text)
    for wanted in ("the very cause", "exited 7", "non_zero_exit", "1.10", '"selected": "b"', "a:solo", "390ms"):
        assert wanted in text
    assert "prefers-color-scheme:dark" in page


def test_outputs_are_shown():
    page = page_of(
        spine(solo("a")), [driver(), *ran("a", 0, 1), run_closed(1, RunStatus.SUCCEEDED, outputs={"n": 2**70})]
    )
    assert str(2**70) in page


def test_nothing_that_was_printed_is_markup():
    events = [
        driver(),
        *broke("a", 0, 1, EVIL, EVIL),
        run_closed(1, RunStatus.FAILED, error=EVIL, outputs={EVIL: EVIL}),
    ]
    checked(page_of(spine(solo("a")), events, title=EVIL, params={EVIL: EVIL}))


def test_escapes_are_removed_and_an_overwritten_line_shows_once():
    printed = "\x1b[32mgreen\x1b[0m\n" + "".join(f"\rprogress {n:03}%" for n in range(1_001)) + "\nend\0"
    page = page_of(spine(solo("a")), [driver(), *ran("a", 0, 1, printed)])
    assert not any(ord(char) < 32 and char != "\n" for char in page)
    assert page.count("progress") == 1
    assert "progress 1000%" in page


def test_a_big_text_shows_its_end_and_tells_its_size():
    printed = "".join(f"line {n}\n" for n in range(400_000))
    page = page_of(spine(solo("a")), [driver(), *ran("a", 0, 1, printed)])
    assert "line 399999" in page
    assert f"of {len(printed) / 1_000_000:.1f} M characters" in page
    assert len(page.encode()) < 100_000


@pytest.mark.parametrize("character", ["x", '"', "漢"])
def test_ten_thousand_failed_units_stay_small(character):
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 10_000)]
    text = character * 2_000
    for n in range(10_000):
        unit = f"m.unit:{n:064x}"
        events.append(started("m", n, unit=unit, index=n))
        events.append(ended("m", n + 5, bad(text, text) if n % 2 else good(text), unit=unit, index=n))
    events.append(closed("m", 11_000, Status.FAILED, reason=Reason.NON_ZERO_EXIT, error=text))
    page = page_of(plan, events)
    assert len(page.encode()) < 3_000_000
    assert "10,000 units" in page
    checked(page)


def test_two_hundred_and_fifty_six_steps_stay_small():
    plan = dag(*(solo(f"s{n}", needs=(f"s{n - 1}",) if n else ()) for n in range(256)))
    events = [driver()]
    for n in range(256):
        events += ran(f"s{n}", n, n + 1, '"' * 50_000)
    page = page_of(plan, events)
    assert len(page.encode()) < 3_000_000
    checked(page)


def test_a_run_that_never_started_has_a_page():
    checked(page_of(spine(solo("a")), []))

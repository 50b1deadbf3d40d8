"""Lines reach an observer in blocks where it takes them so, one by one elsewhere."""

from __future__ import annotations

from flowstone.ports.observer import lines_of


class OneByOne:
    def __init__(self) -> None:
        self.seen: list[object] = []

    def recorded(self, state, events):
        pass

    def warned(self, text):
        pass

    def line(self, step, unit, text):
        self.seen.append((step, unit, text))


class Blocks(OneByOne):
    def lines(self, step, unit, texts):
        self.seen.append((step, unit, list(texts)))


def test_an_observer_of_single_lines_gets_each():
    observer = OneByOne()
    lines_of(observer)("s", "s:solo", ["a", "b"])
    assert observer.seen == [("s", "s:solo", "a"), ("s", "s:solo", "b")]


def test_an_observer_of_blocks_gets_one():
    observer = Blocks()
    lines_of(observer)("s", "s:solo", ["a", "b"])
    assert observer.seen == [("s", "s:solo", ["a", "b"])]

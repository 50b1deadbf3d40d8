"""A map of model units against a server that answers after 50 ms: time against the ideal, and memory.

    python benchmarks/llm_map.py [ROUNDS]

The ideal is units / width × 50 ms. Three figures: the whole command, with start-up; the command beyond
start-up, for which all but the answer of a run of one unit is taken off; and the run itself from its
creation to its end. The server has a process of its own, on the same machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime

from common import AKM, Cost, Ground, cpu, ground, in_turn, peak, rounds_wanted, seconds, show, wall

DELAY_S = 0.05
WIDTH = 16
UNITS = 200
MANY = 1_000
WORKFLOW = f"""---
type: workflow
updated: 2026-01-01
params: {{ xs: {{ type: array }} }}
steps:
  - id: m
    map: {{ over: params.xs, concurrency: {WIDTH}, unit: {{}} }}
---

# Map

## m

Say something about the item.
"""


def main() -> None:
    rounds = rounds_wanted(5)
    with served() as endpoint, ground() as place:
        prepare(place, endpoint)
        drives: list[float] = []
        costs = in_turn(
            rounds,
            {"1": lambda: run(place, 1, []), "200": lambda: run(place, UNITS, drives), "idle": idle},
        )
        many = in_turn(1, {"many": lambda: run(place, MANY, [])})["many"]
    ideal = UNITS / WIDTH * DELAY_S
    beyond = wall(costs["200"]) - (wall(costs["1"]) - DELAY_S)
    figures = f"{seconds(costs['200'])}, ideal {ideal:.3f} s"
    show(
        f"akm: {UNITS} model units at width {WIDTH}, whole command × ideal",
        wall(costs["200"]) / ideal,
        1.25,
        None,
        figures,
    )
    show(
        "  beyond start-up × ideal", beyond / ideal, 1.2, 1.25, f"less {seconds(costs['1'])}, and 0.05 s for its answer"
    )
    show(
        "  from the run's creation to its end × ideal", statistics.median(drives) / ideal, 1.2, None, "by its own clock"
    )
    spent = (cpu(costs["200"]) - cpu(costs["1"])) / (UNITS - 1) * 1000
    print(f"  {spent:.2f} ms of CPU a unit; waking after 50 ms took {wall(costs['idle']) * 1000:.1f} ms", flush=True)
    print(f"akm: {MANY:,} model units: peak {peak(many):.0f} MiB (at most 250)", flush=True)


def run(place: Ground, units: int, drives: list[float]) -> Cost:
    items = json.dumps([f"item {number}" for number in range(units)])
    cost = place.measure([*AKM, "workflow", "run", "./map.md", "--new", "--xs", items])
    done = json.loads(place.said())["run"]
    drives.append(time_of(done["completedAt"]) - time_of(done["createdAt"]))
    return cost


def idle() -> Cost:
    """How late this machine wakes whoever waits."""
    started = time.perf_counter()
    time.sleep(DELAY_S)
    return Cost(time.perf_counter() - started, 0, 0)


def time_of(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def prepare(place: Ground, endpoint: str) -> None:
    """A configuration with one engine, and the workflow."""
    engine = {"kind": "llm", "endpoint": endpoint, "model": "m", "concurrency": WIDTH}
    config = {
        "configVersion": "0.9.0",
        "engines": {"fake": engine},
        "defaults": {"engine": "fake"},
        "workflow": {"hostConcurrency": WIDTH},
    }
    os.makedirs(place.env["AKM_CONFIG_DIR"], exist_ok=True)
    place.write("config/config.json", json.dumps(config))
    place.write("map.md", WORKFLOW)


SERVER = f"""
import sys
from flowstone.testing.model_server import Answer, ModelServer
with ModelServer([Answer("a short answer", delay_s={DELAY_S})]) as server:
    print(server.endpoint, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def served() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip()
        assert server.stdin is not None
        server.stdin.close()


if __name__ == "__main__":
    main()

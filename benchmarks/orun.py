"""orun beyond plain commands: validating CEL, chains and wide graphs that interpolate it, and much output.

A chain and a wide graph are compared with `xargs` spawning the same commands, both beyond their own
start-up; validating with `python -c pass`, by CPU time; what a command prints is 4 MB of lines of
3 characters, a million of them, taken off what the same run takes with none.
"""

from __future__ import annotations

import sys

from chain import durable_writes
from common import ORUN, PASS, Cost, Ground, cpu, ground, in_turn, rounds_wanted, seconds, show, wall
from workflows import orun_cel_chain, orun_cel_wide, orun_printing

STEPS = 200
WIDTH = 4
PRINTED_BYTES = 4_000_000


def main() -> None:
    rounds = rounds_wanted(5)
    with ground() as place:
        for count in (1, STEPS):
            place.write(f"chain{count}.yaml", orun_cel_chain(count))
            place.write(f"wide{count}.yaml", orun_cel_wide(count, WIDTH))
        validate(place, rounds)
        spawning(place, rounds, "chain", 1)
        spawning(place, rounds, "wide", WIDTH)
        printing(place, rounds)


def validate(place: Ground, rounds: int) -> None:
    sides = {"pass": lambda: place.measure(PASS)}
    for count in (1, STEPS):
        sides[str(count)] = lambda count=count: place.measure([*ORUN, "workflow", "validate", f"chain{count}.yaml"])
    costs = in_turn(rounds, sides)
    many, one, base = cpu(costs[str(STEPS)]), cpu(costs["1"]), cpu(costs["pass"])
    figures = f"{many * 1000:.0f} ms of CPU, {one * 1000:.0f} ms with one step"
    print(f"orun: validate {STEPS} steps with CEL × python -c pass: {many / base:.1f} ({figures})", flush=True)


def spawning(place: Ground, rounds: int, name: str, width: int) -> None:
    def ours(count: int) -> Cost:
        return place.measure([*ORUN, "workflow", "run", f"{name}{count}.yaml"])

    costs = in_turn(
        rounds,
        {
            "xargs 1": lambda: echoes(place, 1, width),
            "orun 1": lambda: ours(1),
            "xargs": lambda: echoes(place, STEPS, width),
            "orun": lambda: ours(STEPS),
            "disk": lambda: durable_writes(place),
        },
    )
    base = wall(costs["xargs"]) - wall(costs["xargs 1"])
    beyond = wall(costs["orun"]) - wall(costs["orun 1"])
    spent = (cpu(costs["orun"]) - cpu(costs["orun 1"])) / (cpu(costs["xargs"]) - cpu(costs["xargs 1"]))
    figures = f"{seconds(costs['orun'])} less {seconds(costs['orun 1'])}, xargs {base:.3f} s; CPU × {spent:.2f}"
    show(f"orun: {name} of {STEPS} with CEL × xargs -P{width}", beyond / base, 1.7, 2, figures)
    if width == 1:
        disk = wall(costs["disk"])
        print(f"  × xargs and {STEPS} durable writes ({disk:.3f} s): {beyond / (base + disk):.2f}", flush=True)


def echoes(place: Ground, count: int, width: int) -> Cost:
    """The same commands, started by xargs."""
    lines = "".join(f"n{number}\n" for number in range(count))
    return place.measure(["xargs", f"-P{width}", "-n1", "/bin/echo"], given=lines)


def printing(place: Ground, rounds: int) -> None:
    place.write("much.yaml", orun_printing(sys.executable, PRINTED_BYTES))
    place.write("none.yaml", orun_printing(sys.executable, 0))
    costs = in_turn(
        rounds,
        {
            name: lambda name=name: place.measure([*ORUN, "workflow", "run", f"{name}.yaml"])
            for name in ("none", "much")
        },
    )
    beyond = wall(costs["much"]) - wall(costs["none"])
    spent = cpu(costs["much"]) - cpu(costs["none"])
    figures = (
        f"{seconds(costs['much'])} less {seconds(costs['none'])}; {spent:.2f} s of CPU, the printing command's too"
    )
    show("orun: 4 MB of short lines, in seconds", beyond, 0.5, 1, figures)


if __name__ == "__main__":
    main()

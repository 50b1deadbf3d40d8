"""A map of 1,000 `true` at widths 4 and 16 against `xargs -P`, and 200 steps side by side in orun.

What the same run takes with one item is taken off, as is what xargs takes for one command.
"""

from __future__ import annotations

from common import AKM, ORUN, Cost, Ground, cpu, ground, in_turn, rounds_wanted, seconds, show, wall, xargs
from workflows import akm_map, orun_wide

ITEMS = 1_000
STEPS = 200
STEPS_WIDTH = 4


def main() -> None:
    rounds = rounds_wanted(5)
    for width in (4, 16):
        with ground() as place:
            place.configure(hostConcurrency=16, maxConcurrency=16)
            place.write("map.md", akm_map(width))
            compare(place, rounds, width)
    with ground() as place:
        compare_steps(place, rounds)


def compare(place: Ground, rounds: int, width: int) -> None:
    def ours(count: int):
        items = ",".join(map(str, range(count)))
        return place.measure([*AKM, "workflow", "run", "./map.md", "--new", "--items", f"[{items}]"])

    costs = in_turn(
        rounds,
        {
            "xargs 1": lambda: xargs(place, 1, width),
            "akm 1": lambda: ours(1),
            "xargs": lambda: xargs(place, ITEMS, width),
            "akm": lambda: ours(ITEMS),
        },
    )
    base = wall(costs["xargs"]) - wall(costs["xargs 1"])
    beyond = wall(costs["akm"]) - wall(costs["akm 1"])
    figures = f"{seconds(costs['akm'])} less {seconds(costs['akm 1'])}, xargs {base:.3f} s; {spent(costs, 'akm')}"
    show(f"akm: a map of {ITEMS:,} × xargs -P{width}", beyond / base, 1.7, 2, figures)


def compare_steps(place: Ground, rounds: int) -> None:
    for count in (1, STEPS):
        place.write(f"wide{count}.yaml", orun_wide(count, STEPS_WIDTH))
    costs = in_turn(
        rounds,
        {
            "xargs 1": lambda: xargs(place, 1, STEPS_WIDTH),
            "orun 1": lambda: place.measure([*ORUN, "workflow", "run", "wide1.yaml"]),
            "xargs": lambda: xargs(place, STEPS, STEPS_WIDTH),
            "orun": lambda: place.measure([*ORUN, "workflow", "run", f"wide{STEPS}.yaml"]),
        },
    )
    base = wall(costs["xargs"]) - wall(costs["xargs 1"])
    beyond = wall(costs["orun"]) - wall(costs["orun 1"])
    figures = f"{seconds(costs['orun'])} less {seconds(costs['orun 1'])}, xargs {base:.3f} s; {spent(costs, 'orun')}"
    show(f"orun: {STEPS} steps side by side × xargs -P{STEPS_WIDTH}", beyond / base, 1.7, 2, figures)


def spent(costs: dict[str, list[Cost]], name: str) -> str:
    """The same by CPU time, which other work on the machine changes less."""
    base = cpu(costs["xargs"]) - cpu(costs["xargs 1"])
    return f"CPU × {(cpu(costs[name]) - cpu(costs[f'{name} 1'])) / base:.2f}"


if __name__ == "__main__":
    main()

"""A 10,000-wide map against a 1,000-wide one, and the resume of such a run with one unit left.

The items are numbers in a param, so that the list takes no dispatch of its own: a run dispatches
at most 10,000 units in its life. The failing unit of the run that is resumed counts as well, so
that one has 9,999 items.
"""

from __future__ import annotations

import json
import os

from common import AKM, Cost, Ground, ground, in_turn, peak, rounds_wanted, seconds, show, wall
from workflows import akm_broken_map, akm_map

WIDTH = 16


def main() -> None:
    rounds = rounds_wanted(3)
    with ground() as place:
        place.configure(hostConcurrency=WIDTH, maxConcurrency=WIDTH)
        place.write("map.md", akm_map(WIDTH))
        costs = in_turn(rounds, {"thousand": lambda: ours(place, 1_000), "ten": lambda: ours(place, 10_000)})
        figures = f"{seconds(costs['ten'])} to {seconds(costs['thousand'])}"
        show("akm: 10,000 wide × 1,000 wide", wall(costs["ten"]) / wall(costs["thousand"]), 10, 11, figures)
        print(f"akm: 10,000 wide: peak {peak(costs['ten']):.0f} MiB (at most 200)", flush=True)
    with ground() as place:
        place.configure(hostConcurrency=WIDTH, maxConcurrency=WIDTH)
        resume(place, rounds)


def resume(place: Ground, rounds: int) -> None:
    place.write("broken.md", akm_broken_map(WIDTH))
    place.write("map.md", akm_map(WIDTH))
    resumed = []
    for _ in range(rounds):
        if os.path.exists(os.path.join(place.folder, "mended")):
            os.unlink(os.path.join(place.folder, "mended"))
        run = failed_run(place)
        place.write("mended", "")
        place.measure([*AKM, "workflow", "resume", run])
        resumed.append(place.measure([*AKM, "workflow", "run", run]))
    one = in_turn(rounds, {"one": lambda: ours(place, 1)})["one"]
    beyond = wall(resumed) - wall(one)
    figures = f"{seconds(resumed)} less {seconds(one)}, in seconds; peak {peak(resumed):.0f} MiB"
    show("akm: resume of 9,999 units with one left, beyond a run of one", beyond, 1, None, figures)


def failed_run(place: Ground) -> str:
    """The id of a new run all of whose units but one succeeded."""
    items = json.dumps([*range(2, 10_000), 1])
    argv = [*AKM, "workflow", "run", "./broken.md", "--new", "--items", items]
    place.measure(["sh", "-c", '"$@" || [ $? = 1 ]', "run", *argv])
    return json.loads(place.said())["run"]["id"]


def ours(place: Ground, count: int) -> Cost:
    items = ",".join(map(str, range(count)))
    return place.measure([*AKM, "workflow", "run", "./map.md", "--new", "--items", f"[{items}]"])


if __name__ == "__main__":
    main()

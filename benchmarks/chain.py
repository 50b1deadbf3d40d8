"""A chain of 200 `true` against `xargs -P1` doing the same, each beyond its own start-up.

What a run of one step takes is taken off, as is what xargs takes for one command. Each step of a
chain is durable before the next one begins, which xargs does not offer, so that on a slow or busy
disk the ratio is the disk's: a second line compares with xargs and as many durable writes.
"""

from __future__ import annotations

import os
import time

from common import AKM, ORUN, Cost, Ground, cpu, ground, in_turn, rounds_wanted, seconds, show, wall, xargs
from workflows import akm_chain, orun_chain

STEPS = 200


def main() -> None:
    with ground() as place:
        for count in (1, STEPS):
            place.write(f"akm{count}.md", akm_chain(count))
            place.write(f"orun{count}.yaml", orun_chain(count))
        sides = {}
        for count in (1, STEPS):
            sides[f"xargs {count}"] = lambda count=count: xargs(place, count, 1)
            sides[f"akm {count}"] = lambda count=count: place.measure(
                [*AKM, "workflow", "run", f"./akm{count}.md", "--new"]
            )
            sides[f"orun {count}"] = lambda count=count: place.measure([*ORUN, "workflow", "run", f"orun{count}.yaml"])
        sides["disk"] = lambda: durable_writes(place)
        costs = in_turn(rounds_wanted(5), sides)
    base = wall(costs[f"xargs {STEPS}"]) - wall(costs["xargs 1"])
    spent = cpu(costs[f"xargs {STEPS}"]) - cpu(costs["xargs 1"])
    for name in ("akm", "orun"):
        beyond = wall(costs[f"{name} {STEPS}"]) - wall(costs[f"{name} 1"])
        figures = f"{seconds(costs[f'{name} {STEPS}'])} less {seconds(costs[f'{name} 1'])}, xargs {base:.3f} s"
        show(f"{name}: a chain of {STEPS} × xargs -P1", beyond / base, 1.3, 2, figures)
        ours = cpu(costs[f"{name} {STEPS}"]) - cpu(costs[f"{name} 1"])
        print(f"  CPU × that of xargs: {ours / spent:.2f} ({ours:.3f} s to {spent:.3f} s)", flush=True)
        disk = wall(costs["disk"])
        print(f"  × xargs and {STEPS} durable writes ({disk:.3f} s): {beyond / (base + disk):.2f}", flush=True)


def durable_writes(place: Ground) -> Cost:
    """What the disk takes to keep as many commits as the chain makes: five pages each, behind one another."""
    started = time.perf_counter()
    descriptor = os.open(os.path.join(place.folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for _ in range(STEPS):
        os.write(descriptor, bytes(5 * 4096))
        os.fdatasync(descriptor)
    os.close(descriptor)
    return Cost(time.perf_counter() - started, 0, 0)


if __name__ == "__main__":
    main()

"""Start-up: CPU time of small verbs as a multiple of what Python itself takes to do nothing."""

from __future__ import annotations

import json

from common import AKM, ORUN, PASS, cpu, ground, in_turn, rounds_wanted, show
from workflows import akm_chain, orun_chain


def main() -> None:
    with ground() as place:
        place.write("one.md", akm_chain(1))
        place.write("one.yaml", orun_chain(1))
        place.measure([*AKM, "workflow", "run", "./one.md"])
        run = json.loads(place.said())["run"]["id"]
        costs = in_turn(
            rounds_wanted(21),
            {
                "pass": lambda: place.measure(PASS),
                "akm workflow status": lambda: place.measure([*AKM, "workflow", "status", run]),
                "orun workflow validate": lambda: place.measure([*ORUN, "workflow", "validate", "one.yaml"]),
            },
        )
    base = cpu(costs.pop("pass"))
    for name, found in costs.items():
        figures = f"{cpu(found) * 1000:.1f} ms of CPU, python -c pass {base * 1000:.1f} ms"
        show(f"{name} × python -c pass", cpu(found) / base, 7, 8, figures)


if __name__ == "__main__":
    main()

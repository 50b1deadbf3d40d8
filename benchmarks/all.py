"""Runs every benchmark, one after the other; a number behind it is the number of rounds of each."""

from __future__ import annotations

import chain
import large
import llm_map
import orun
import spawn
import startup
import wide


def main() -> None:
    for benchmark in (startup, chain, wide, large, spawn, orun, llm_map):
        benchmark.main()


if __name__ == "__main__":
    main()

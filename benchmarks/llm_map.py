"""A map of model units against a server that answers after 50 ms: time against the ideal, and memory.

    python benchmarks/llm_map.py [UNITS] [WIDTH]

Prints the time of the drive (process start and imports left out) and of the whole command, as
multiples of the ideal, which is the number of rounds times 50 ms; and the peak memory of the command.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flowstone
from flowstone.testing.model_server import Answer, ModelServer

DELAY_S = 0.05
WORKFLOW = """---
type: workflow
updated: 2026-01-01
params: {{ xs: {{ type: array }} }}
steps:
  - id: m
    map: {{ over: params.xs, concurrency: {width}, unit: {{}} }}
---

# Map

## m

Say something about the item.
"""


def main() -> None:
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    with ModelServer([Answer("a short answer", delay_s=DELAY_S)]) as server, tempfile.TemporaryDirectory() as folder:
        command, env = prepared(Path(folder), server.endpoint, units, width)
        started = time.monotonic()
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        wall = time.monotonic() - started
        if done.returncode != 0:
            sys.exit(done.stderr + done.stdout)
        assert len(server.asked) == units
        run = json.loads(done.stdout)["run"]
        ideal = -(-units // width) * DELAY_S
        drive = time_of(run["completedAt"]) - time_of(run["createdAt"])
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"{units} units at width {width}: ideal {ideal:.2f} s, from start to end of the run {drive:.2f} s "
            f"({drive / ideal:.2f}), command {wall:.2f} s; peak {server.peak} at a time over "
            f"{server.connections} connections; {memory:.0f} MiB"
        )


def time_of(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def prepared(folder: Path, endpoint: str, units: int, width: int) -> tuple[list[str], dict[str, str]]:
    """The command and its environment, with a workflow and a configuration in the folder."""
    engine = {"kind": "llm", "endpoint": endpoint, "model": "m", "concurrency": width}
    config = {
        "configVersion": "0.9.0",
        "engines": {"fake": engine},
        "defaults": {"engine": "fake"},
        "workflow": {"hostConcurrency": width},
    }
    (folder / "config").mkdir()
    (folder / "config" / "config.json").write_text(json.dumps(config))
    (folder / "map.md").write_text(WORKFLOW.format(width=width))
    source = os.path.dirname(os.path.dirname(os.path.abspath(flowstone.__file__)))
    env = {
        **os.environ,
        "PYTHONPATH": source,
        **{f"AKM_{name}_DIR": f"{folder}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE")},
    }
    items = json.dumps([f"item {number}" for number in range(units)])
    code = "from flowstone.cli.akm.main import main; main()"
    command = [sys.executable, "-c", code, "workflow", "run", "./map.md", "--xs", items]
    return command, env


if __name__ == "__main__":
    main()

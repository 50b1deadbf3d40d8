"""What the steps of the release check share: where things are, and what the run handed over."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARAMS = json.loads(os.environ.get("AKM_PARAMS", "{}"))
OUT = ROOT / (os.environ.get("RELEASE_OUT") or PARAMS.get("out", ".flowstone/release"))


def given(reference: str, variable: str = "") -> object:
    """An upstream artifact: by reference from an akm run, by variable from an orun run."""
    return json.loads(os.environ.get("AKM_INPUTS", "{}")).get(reference) or os.environ.get(variable)


def report(value: object) -> None:
    """Print the step's one JSON value."""
    json.dump(value, sys.stdout)
    print()

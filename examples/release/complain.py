"""List the faults that keep the tree from being released, and fail."""

import sys

from common import given

for entry in given("steps.check.output"):
    for fault in (entry or {}).get("faults", ["could not be checked"]):
        print(f"{(entry or {}).get('package', '?')}/{fault}", file=sys.stderr)
sys.exit(1)

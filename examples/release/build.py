"""Build the wheel of this checkout from a copy, so that the tree stays as it is."""

import shutil
import subprocess
import sys

from common import OUT, ROOT, report

source = OUT / "source"
shutil.rmtree(OUT, ignore_errors=True)
source.mkdir(parents=True)
shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
for name in ("pyproject.toml", "README.md"):
    shutil.copy(ROOT / name, source / name)
subprocess.run(
    [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        OUT / "dist",
        source,
    ],
    check=True,
    stdout=sys.stderr,
)
report({"wheel": str(next((OUT / "dist").glob("flowstone-*.whl")))})

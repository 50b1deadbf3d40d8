"""What reading verbs import: nothing that only a run or a compilation needs."""

import subprocess
import sys

import pytest

HEAVY = ("asyncio", "yaml", "pyromark", "rich", "cel_expr_python", "re2", "jsonschema_rs")


@pytest.mark.parametrize("verb", [("workflow", "status", "workflows/w"), ("workflow", "list"), ("log",)])
def test_reading_verbs_import_nothing_heavy(akm, environment, verb):
    akm.workflow("w", ("a", "true"))
    akm.json("workflow", "run", "workflows/w")
    code = (
        "import sys; from flowstone.cli.akm.main import run; code = run(sys.argv[1:]);"
        f" print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *verb],
        cwd=akm.folder / "project",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")

"""Install the wheel into a fresh environment; its dependencies are those of this environment."""

import subprocess
import sys
import sysconfig
import venv

from common import OUT, given, report

place = OUT / "env"
venv.create(place, with_pip=False, clear=True, symlinks=True)
python = place / "bin" / "python"
wheel = given("steps.build.output.wheel", "RELEASE_WHEEL")
install = [
    sys.executable,
    "-m",
    "pip",
    "--disable-pip-version-check",
    "--python",
    python,
    "install",
    "-q",
    "--no-deps",
    "--no-index",
    wheel,
]
subprocess.run(install, check=True, stdout=sys.stderr)
site = next(place.glob("lib/python*/site-packages"))
(site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
report({"command": str(place / "bin" / "flowstone")})

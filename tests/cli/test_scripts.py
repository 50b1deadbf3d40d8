"""The scripts and the lock that they install."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["script/bootstrap", "script/test", "script/lock", "script/demo", ".ci/run"])
def test_scripts_can_be_run(name):
    assert os.access(ROOT / name, os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / name], check=False).returncode == 0


def test_the_lock_names_no_place_and_hashes_everything():
    text = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^([a-z0-9-]+)==\S+", text, re.M)
    assert "://" not in text
    assert len(re.findall(r"==[^\n]*\\\n    --hash=sha256:", text)) == len(pins)


def test_the_lock_covers_what_the_project_declares():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"], "setuptools", "wheel"]
    names = {re.split(r"[<>=!~; \[]", item)[0].lower().replace("_", "-") for item in declared}
    pins = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert names <= pins

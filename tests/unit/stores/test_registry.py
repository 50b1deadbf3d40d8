from __future__ import annotations

import subprocess
import sys

import pytest

from flowstone.errors import ConfigError
from flowstone.stores.registry import open_store


def test_an_unknown_store_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match='no store "oracle"') as caught:
        open_store("oracle", "x")
    assert caught.value.hint == "use one of: directory, memory, sqlite"


def test_the_registry_imports_no_store_before_it_is_opened():
    program = "import sys, flowstone.stores.registry; print('sqlite3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "False"

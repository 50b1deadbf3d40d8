"""The store contract, for every store of the registry."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from flowstone.stores.registry import OPENERS, open_store
from flowstone.testing.store_contract import OpenStore, StoreContract
from flowstone.testing.store_processes import FileStoreContract


@pytest.fixture
def root():
    """A folder that every user can reach, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


class TestMemory(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = open_store("memory", "")
        return lambda: store


class _InFiles(StoreContract, FileStoreContract):
    @pytest.fixture
    def open_store(self, root):
        opened = []

        def opening():
            opened.append(self.opened(root))
            return opened[-1]

        yield opening
        for store in opened:
            store.close()


class TestSqlite(_InFiles):
    name = "sqlite"
    database = "data/state.db"
    blobs = "data/blobs"
    locks = "data/locks"


class TestDirectory(_InFiles):
    name = "directory"
    database = "journal/state.db"
    blobs = "journal/blobs"
    locks = "journal/locks"


def test_every_store_of_the_registry_keeps_the_contract():
    assert set(OPENERS) == {"memory", TestSqlite.name, TestDirectory.name}

"""Stores for runs that crash: each test opens as many as it needs."""

from __future__ import annotations

import itertools

import pytest

from flowstone.stores.registry import open_store


@pytest.fixture
def opened(tmp_path):
    """A function that opens an empty store of a name, again and again."""
    stores = []
    numbers = itertools.count()

    def opening(name):
        stores.append(open_store(name, str(tmp_path / f"{next(numbers)}")))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()

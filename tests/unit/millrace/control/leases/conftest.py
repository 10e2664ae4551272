"""A folder of leases, and a run that takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.control.leases.leases import Leases
from millrace.control.storage.objects import LocalObjectStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture
def store(folder: Path) -> LocalObjectStore:
    return LocalObjectStore(folder)


@pytest.fixture
def first(store: LocalObjectStore) -> Leases:
    return Leases(store, "run one", lasts_s=60.0, patience_s=0.3)

"""A landing folder that a source system delivers into, an empty table, and a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.ledger.ledger import Ledger
from include.paths import LakehousePaths
from include.settings import Settings
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import create_table
from tests.support.ledger.planning import CheckedPlanner


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """The landing root; nothing is delivered yet."""
    return tmp_path / "landing"


@pytest.fixture
def deliver(landing: Path) -> Deliver:
    """The source system."""
    return Deliver(landing)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An empty `silver.flights`."""
    path = LakehousePaths(tmp_path).table("silver.flights")
    create_table(path)
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The ledger of the lakehouse at `tmp_path`."""
    return Ledger(LakehousePaths(tmp_path))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lakehouse"


@pytest.fixture
def advise(root: Path, landing: Path, tmp_path: Path) -> CheckedPlanner:
    return CheckedPlanner(Settings(root=root, landing=landing), tmp_path)

"""A landing folder that a source system delivers into, an empty table, and the ledger and gates of a lakehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.gates.gates import Gates
from include.control.ledger.ledger import Ledger
from include.control.log.stored_tables import open_table
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
def paths(tmp_path: Path) -> LakehousePaths:
    """The lakehouse at `tmp_path`."""
    return LakehousePaths(tmp_path)


@pytest.fixture
def table(paths: LakehousePaths) -> Path:
    """An empty `silver.flights`."""
    path = paths.table("silver.flights")
    create_table(path)
    return path


@pytest.fixture
def table_id(table: Path) -> str:
    """Delta's id of `silver.flights`."""
    return str(open_table(table).metadata().id)


@pytest.fixture
def gates(paths: LakehousePaths) -> Gates:
    """The results of gates of the lakehouse at `tmp_path`."""
    return Gates(paths)


@pytest.fixture
def ledger(paths: LakehousePaths) -> Ledger:
    """The ledger of the lakehouse at `tmp_path`."""
    return Ledger(paths)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lakehouse"


@pytest.fixture
def advise(root: Path, landing: Path, tmp_path: Path) -> CheckedPlanner:
    return CheckedPlanner(Settings(root=root, landing=landing), tmp_path)

"""The real source, opened once a session, and three days of it laid out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

from demo.source_system import FIRST_DAY, LAST_DAY, Delivery, lay_out
from demo.source_system.flight_events import create_flight_events
from demo.source_system.nycflights import open_source
from demo.source_system.repetition import create_deliveries

DAYS = (date(2013, 1, 1), date(2013, 1, 4))


@pytest.fixture(scope="session")
def source() -> Iterator[duckdb.DuckDBPyConnection]:
    """The whole source with its flight events and every delivery of them; read only."""
    with open_source() as connection:
        create_flight_events(connection)
        create_deliveries(connection, FIRST_DAY, LAST_DAY + timedelta(days=1))
        yield connection


@pytest.fixture(scope="session")
def three_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Delivery]:
    """The landing folder of 2013-01-01 to 2013-01-03, and what was delivered; read only."""
    landing = tmp_path_factory.mktemp("landing")
    return landing, lay_out(landing, *DAYS)

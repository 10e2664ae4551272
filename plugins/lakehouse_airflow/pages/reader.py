"""The reader of the lakehouse that all pages of a process share, and what it has read before."""

from __future__ import annotations

import os
from functools import cache

from include.overview.lakehouse import LakehouseReader
from include.settings import Settings
from lakehouse_airflow.hooks.store_access import reach_store


def lakehouse() -> LakehouseReader:
    """Return the reader of the lakehouse of the settings."""
    return _reader(Settings().absolute().model_dump_json(include={"root", "lease_store", "tables"}))


@cache
def _reader(_places: str) -> LakehouseReader:
    settings = Settings().absolute()
    reach_store(os.environ, settings)
    return LakehouseReader(settings.paths, settings.tables)

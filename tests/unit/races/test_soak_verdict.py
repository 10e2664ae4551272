"""The verdict of a soak looks at every Delta table that Spark writes."""

from __future__ import annotations

from pathlib import Path

from include.paths import LakehousePaths
from races.soak.lives import SILVER
from races.soak.verdict import folders
from tests.support.ledger.delta_tables import create_table


def test_the_tables_of_silver_are_those_of_its_present_id(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    assert folders(paths) == []
    table_id = create_table(paths.table(SILVER))
    tables = [paths.table(SILVER), paths.quarantine(SILVER), paths.tombstones(SILVER, table_id)]
    for path in tables[1:]:
        create_table(path)
    assert folders(paths) == tables

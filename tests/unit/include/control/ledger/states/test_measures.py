"""What a state says about the newest version of its table."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from include.clock import utc_now
from include.control.ledger.states.measures import Measures, measure
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import set_property


def test_the_measures_say_since_when_the_table_exists_whatever_changes_it(tmp_path: Path) -> None:
    table, begun = LakehousePaths(tmp_path).table("bronze.orders"), utc_now()
    write_deltalake(table, pa.table({"n": [1]}))
    first = measure(table)
    set_property(table)
    write_deltalake(table, pa.table({"n": [2]}), mode="append")
    later = measure(table)
    assert first
    assert first.created
    assert later
    assert begun - timedelta(milliseconds=1) <= first.created <= utc_now()
    assert (later.created, later.version) == (first.created, 2)
    assert Measures.model_validate_json(later.model_dump_json()) == later
    shutil.rmtree(table)
    write_deltalake(table, pa.table({"n": [1]}))
    again = measure(table)
    assert again
    assert again.created
    assert again.created > first.created

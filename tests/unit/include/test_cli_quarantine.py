"""`lakehouse quarantine`: which rows the tables refused, and why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.control.quarantined import Refusal, refusals, refused_rows
from include.errors import ExitCode
from include.paths import LakehousePaths
from tests.support.cli import Lakehouse
from tests.support.delta_tables import day

FIRST = datetime(2013, 1, 1, tzinfo=UTC)
TOO_LOW, NO_KEY = "expect_between(amount): no [negative] prices", "not_null(order_id): every order has a number"
_COLUMNS = pa.schema(
    [
        ("record", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("source", pa.string()),
        ("position", pa.int64()),
        ("_interval_start", pa.timestamp("us", tz="UTC")),
        ("_batch_seq", pa.int64()),
    ]
)


def refused(number: int, *reasons: str, of_day: int = 1, **more: Any) -> dict[str, Any]:
    said = {"record": f'{{"order_id":"o{number}"}}', "reasons": list(reasons), "_batch_seq": of_day}
    return {**said, "source": None, "position": None, "_interval_start": FIRST + timedelta(days=of_day - 1), **more}


@pytest.fixture
def paths(place: Mapping[str, str]) -> LakehousePaths:
    """Three refused rows of a silver table, one of them for two reasons, and one of bronze that was no record."""
    paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
    rows = [refused(1, TOO_LOW), refused(2, TOO_LOW, of_day=2), refused(3, TOO_LOW, NO_KEY, of_day=2)]
    write_deltalake(paths.quarantine("silver.orders"), pa.Table.from_pylist(rows, _COLUMNS))
    broken = refused(0, "not a record: cannot be parsed", record="{[b]", source="orders/a.json", position=7)
    write_deltalake(paths.quarantine("bronze.orders"), pa.Table.from_pylist([broken], _COLUMNS))
    return paths


def test_each_reason_has_its_rows_its_intervals_and_its_last_batch(paths: LakehousePaths) -> None:
    second = FIRST + timedelta(days=1)
    assert refusals("silver.orders", paths) == [
        Refusal(TOO_LOW, rows=3, first=FIRST, last=second, batch_seq=2),
        Refusal(NO_KEY, rows=1, first=second, last=second, batch_seq=2),
    ]
    assert refusals("gold.revenue_daily", paths) == []


def test_rows_come_newest_batch_first_and_can_be_chosen_by_reason_and_interval(paths: LakehousePaths) -> None:
    everything = refused_rows("silver.orders", paths)
    assert [row.record[13:15] for row in everything] == ["o2", "o3", "o1"]
    assert [row.record[13:15] for row in refused_rows("silver.orders", paths, reason="not_null")] == ["o3"]
    assert [row.record[13:15] for row in refused_rows("silver.orders", paths, [day(1)])] == ["o1"]
    assert refused_rows("gold.revenue_daily", paths) == []


def test_the_list_names_every_table_that_refused_rows(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    assert paths.quarantine("silver.orders").exists()
    answer = lakehouse("quarantine", "list")
    assert answer.exit_code == 0, answer.stderr
    for words in ("bronze.orders", "not a record", "silver.orders", "no [negative] prices", "2013-01-02 00:00"):
        assert words in answer.stdout
    assert "gold.revenue_daily" not in answer.stdout
    assert lakehouse("quarantine", "list", "--domain", "shop").stdout == answer.stdout


def test_a_row_is_shown_whole_with_where_it_came_from(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    assert paths.quarantine("bronze.orders").exists()
    answer = lakehouse("quarantine", "show", "bronze.orders")
    for words in ("orders/a.json", " 7 ", "{[b]", "1 of 1 quarantined rows of bronze.orders"):
        assert words in answer.stdout
    assert "1 of 3 quarantined" in lakehouse("quarantine", "show", "silver.orders", "--limit", "1").stdout
    assert "1 of 1 quarantined" in lakehouse("quarantine", "show", "silver.orders", "--reason", "not_null").stdout


def test_without_refused_rows_and_without_such_a_table_it_says_so(lakehouse: Lakehouse) -> None:
    assert "No row is in quarantine." in lakehouse("quarantine", "list").stdout
    assert "0 of 0 quarantined rows" in lakehouse("quarantine", "show", "silver.orders").stdout
    answer = lakehouse("quarantine", "show", "silver.ordres")
    assert (answer.exit_code, "silver.orders" in answer.stderr) == (ExitCode.BAD_SPEC, True)

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from demo.oracle import DEFINITIONS, Oracle, check_against_source, checksums, expected_tables
from demo.source_system import Delivery
from demo.source_system.nycflights import data_folder

START, END = date(2013, 1, 1), date(2013, 1, 4)


@pytest.fixture(scope="module")
def oracle(three_days: tuple[Path, Delivery]) -> Iterator[Oracle]:
    worked_out = expected_tables(three_days[0], START, END)
    yield worked_out
    worked_out.connection.close()


def original_flights() -> list[dict[str, str]]:
    """The flights of the first day, straight from the package's file."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as zipped:
        text = zipped.read("flights.csv").decode()
    rows = csv.DictReader(io.StringIO(text))
    return [row for row in rows if (row["month"], row["day"]) == ("1", "1")]


def test_the_rows_of_every_table_after_three_days(oracle: Oracle) -> None:
    assert oracle.counts() == {
        "bronze.flight_events": 7_635, "bronze.weather": 196, "bronze.planes": 9_966,
        "silver.flights": 3_463, "silver.weather": 196, "silver.planes": 3_322,
        "gold.route_performance_daily": 675, "gold.delay_by_weather": 11,
    }  # fmt: skip


def test_a_day_that_is_wholly_delivered_is_the_original_day(oracle: Oracle) -> None:
    original = original_flights()
    assert len(original) == 842
    delays = Counter((row["origin"], row["dest"]) for row in original if int(row["arr_delay"].replace("NA", "0")) >= 15)
    rows = [row for row in oracle.rows("gold.route_performance_daily") if row["flight_date"] == START]
    for name, expected in (
        ("flights", 842),
        ("departed", sum(row["dep_time"] != "NA" for row in original)),
        ("arrived", sum(row["arr_delay"] != "NA" for row in original)),
        ("cancelled", sum(row["dep_time"] == "NA" for row in original)),
    ):
        assert sum(row[name] for row in rows) == expected, name
    assert {(r["origin"], r["dest"]): r["delayed_15"] for r in rows if r["delayed_15"]} == dict(delays)
    late = [
        int(f["arr_delay"]) for f in original if (f["origin"], f["dest"]) == ("JFK", "LAX") and f["arr_delay"] != "NA"
    ]
    assert len(late) > 20
    [row] = [row for row in rows if (row["origin"], row["dest"]) == ("JFK", "LAX")]
    assert row["avg_arr_delay_min"] == pytest.approx(sum(late) / len(late))
    assert row["max_arr_delay_min"] == max(late)
    assert row["pct_delayed_15"] == pytest.approx(100 * sum(delay >= 15 for delay in late) / len(late))


def test_only_a_wrong_delay_and_a_wrong_time_are_seen_against_the_original_file(oracle: Oracle) -> None:
    check = check_against_source(oracle.connection)
    assert (check.flights, check.wrong_values, check.wrong_clocks) == (3_463, (), ())
    oracle.connection.execute("""CREATE OR REPLACE TEMP TABLE spoilt AS SELECT * REPLACE (
        CASE flight_id WHEN '2013-01-01-UA-1545-EWR' THEN 3 ELSE dep_delay_min END AS dep_delay_min,
        CASE flight_id WHEN '2013-01-01-UA-1714-LGA' THEN arr_at + INTERVAL 1 HOUR ELSE arr_at END AS arr_at)
        FROM silver.flights""")
    check = check_against_source(oracle.connection, "spoilt")
    assert check.wrong_values == ("2013-01-01-UA-1545-EWR",)
    assert check.wrong_clocks == ("2013-01-01-UA-1714-LGA",)


def test_a_table_equals_itself_in_another_order_and_with_more_columns(oracle: Oracle) -> None:
    for table in DEFINITIONS:
        same = oracle.connection.execute(f"SELECT 7 AS _batch_seq, * FROM {table} ORDER BY hash({table})")
        comparison = oracle.compare(table, same.to_arrow_table())
        assert comparison.actual_rows == comparison.expected_rows == oracle.count(table) > 0
        assert (comparison.equal, comparison.missing, comparison.unexpected) == (True, 0, 0)


def test_a_lost_a_doubled_and_a_changed_row_are_each_seen(oracle: Oracle) -> None:
    whole = oracle.connection.execute("FROM silver.planes ORDER BY tailnum").to_arrow_table()
    lost = oracle.compare("silver.planes", whole.slice(1))
    assert (lost.equal, lost.missing, lost.unexpected) == (False, 1, 0)
    assert lost.examples[0]["tailnum"] == "N10156"
    doubled = oracle.compare("silver.planes", pa.concat_tables([whole, whole.slice(0, 1)]))
    assert (doubled.equal, doubled.missing, doubled.unexpected) == (False, 0, 1)
    changed = whole.set_column(6, "seats", pa.array([*range(whole.num_rows - 1), 0], pa.int32()))
    assert oracle.compare("silver.planes", changed).missing > 3_000


def test_a_table_that_lacks_a_column_is_named(oracle: Oracle) -> None:
    planes = oracle.connection.execute("SELECT * EXCLUDE (seats) FROM silver.planes").to_arrow_table()
    with pytest.raises(KeyError, match=r"silver.planes lacks the columns \['seats'\]"):
        oracle.compare("silver.planes", planes)


def test_checksums_read_the_same_over_any_relation(oracle: Oracle) -> None:
    assert oracle.checksums("silver.flights") == {
        "scheduled": 923, "departed": 214, "arrived": 2_304, "cancelled": 22, "dep_delay_min": 27_770,
        "arr_delay_min": 24_104, "air_time_min": 371_267, "distance_miles": 3_653_507,
    }  # fmt: skip
    for table in DEFINITIONS:
        assert checksums(oracle.connection, table, f"(FROM {table})") == oracle.checksums(table)


def test_a_day_that_was_not_laid_out_is_named(three_days: tuple[Path, Delivery]) -> None:
    with pytest.raises(FileNotFoundError, match="date=2013-01-04: lay that day out first"):
        expected_tables(three_days[0], START, date(2013, 1, 5))

"""The source of the demo: its events, its landing files, and the tables that are expected of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import takewhile
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from demo.oracle import DEFINITIONS, Oracle, check_against_source, checksums, expected_tables
from demo.source_system import FIRST_DAY, LAST_DAY, Delivery, OutsideSourceDataError, lay_out
from demo.source_system.flight_events import EVENT_FIELDS, create_flight_events
from demo.source_system.nycflights import data_folder, open_source
from demo.source_system.repetition import DOUBLED_SHARE, create_deliveries

START, END = date(2013, 1, 1), date(2013, 1, 4)


@pytest.fixture(scope="module")
def oracle(three_days: tuple[Path, Delivery]) -> Iterator[Oracle]:
    worked_out = expected_tables(three_days[0], START, END)
    yield worked_out
    worked_out.connection.close()


def original_flights() -> list[dict[str, str]]:
    """The flights of the first day, straight from the package's file."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as zipped, zipped.open("flights.csv") as flights:
        rows = csv.DictReader(io.TextIOWrapper(flights))  # in the order of their days
        return list(takewhile(lambda row: (row["month"], row["day"]) == ("1", "1"), rows))


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
    to_lax = [flight["arr_delay"] for flight in original if (flight["origin"], flight["dest"]) == ("JFK", "LAX")]
    late = [int(delay) for delay in to_lax if delay != "NA"]
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


def test_a_lost_a_doubled_and_a_changed_row_and_a_lost_column_are_each_seen(oracle: Oracle) -> None:
    whole = oracle.connection.execute("FROM silver.planes ORDER BY tailnum").to_arrow_table()
    lost = oracle.compare("silver.planes", whole.slice(1))
    assert (lost.equal, lost.missing, lost.unexpected) == (False, 1, 0)
    assert lost.examples[0]["tailnum"] == "N10156"
    doubled = oracle.compare("silver.planes", pa.concat_tables([whole, whole.slice(0, 1)]))
    assert (doubled.equal, doubled.missing, doubled.unexpected) == (False, 0, 1)
    changed = whole.set_column(6, "seats", pa.array([*range(whole.num_rows - 1), 0], pa.int32()))
    assert oracle.compare("silver.planes", changed).missing > 3_000
    with pytest.raises(KeyError, match=r"silver.planes lacks the columns \['seats'\]"):
        oracle.compare("silver.planes", whole.drop("seats"))


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


@pytest.fixture(scope="module")
def source() -> Iterator[duckdb.DuckDBPyConnection]:
    """The two months in which clocks change, with their flight events and every delivery of them; read only."""
    with open_source() as connection:
        connection.execute("DELETE FROM source_flights WHERE month NOT IN (3, 11)")
        create_flight_events(connection)
        create_deliveries(connection, FIRST_DAY, LAST_DAY + timedelta(days=1))
        yield connection


@pytest.fixture(scope="session")
def three_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Delivery]:
    """The landing folder of 2013-01-01 to 2013-01-03, and what was delivered; read only."""
    landing = tmp_path_factory.mktemp("landing")
    return landing, lay_out(landing, START, END)


def contents(landing: Path) -> dict[str, bytes]:
    return {str(file.relative_to(landing)): file.read_bytes() for file in landing.rglob("*") if file.is_file()}


def events(landing: Path, day: str) -> list[dict[str, object]]:
    files = sorted((landing / "flight_events" / f"date={day}").iterdir())
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def original_rows(name: str) -> list[dict[str, str]]:
    """A file of the package as the csv module reads it, with NA as the empty string."""
    with (data_folder() / name).open(newline="") as file:
        return [{key: "" if value == "NA" else value for key, value in row.items()} for row in csv.DictReader(file)]


def test_the_files_hold_what_is_counted_and_no_event_twice(three_days: tuple[Path, Delivery]) -> None:
    landing, delivery = three_days
    counted = [(d.day.isoformat(), d) for d in delivery.days if d.feed == "flight_events"]
    assert [(day, d.files, d.rows, d.late, d.doubled) for day, d in counted] == [
        ("2013-01-01", 2, 2_119, 9, 9), ("2013-01-02", 2, 2_747, 24, 11), ("2013-01-03", 2, 2_769, 31, 13),
    ]  # fmt: skip
    for day, delivered in counted:
        found = events(landing, day)
        assert len(found) == delivered.rows
        assert sum(str(event["event_at"])[:10] < day for event in found) >= delivered.late
    assert delivery.rows("weather") == 52 + 72 + 72
    assert delivery.rows("planes") == 3 * 3_322
    files = sorted((landing / "flight_events").rglob("*.gz"))
    assert len(files) == 6
    for file in files:
        lines = gzip.decompress(file.read_bytes()).splitlines()
        assert len(set(lines)) == len(lines) > 1_000


def test_an_event_is_a_json_object_of_all_fields_with_utc_instants(three_days: tuple[Path, Delivery]) -> None:
    found = events(three_days[0], "2013-01-01")
    assert {tuple(event) for event in found} == {EVENT_FIELDS}
    arrived = next(e for e in found if (e["flight_id"], e["event"]) == ("2013-01-01-UA-1545-EWR", "arrived"))
    assert arrived == {
        "flight_id": "2013-01-01-UA-1545-EWR", "op": "update", "event": "arrived", "event_at": "2013-01-01T14:30:00Z",
        "event_seq": 3, "status": "arrived", "flight_date": "2013-01-01", "carrier": "UA", "flight_number": 1545,
        "origin": "EWR", "dest": "IAH", "tailnum": "N14228", "sched_dep_at": "2013-01-01T10:15:00Z",
        "sched_arr_at": "2013-01-01T14:19:00Z", "dep_at": "2013-01-01T10:17:00Z", "arr_at": "2013-01-01T14:30:00Z",
        "dep_delay_min": 2, "arr_delay_min": 11, "air_time_min": 227, "distance_miles": 1400,
    }  # fmt: skip


def test_weather_and_planes_are_the_original_digit_for_digit(three_days: tuple[Path, Delivery]) -> None:
    landing, _ = three_days
    with (landing / "planes/date=2013-01-02/planes.csv").open(newline="") as file:
        planes = list(csv.DictReader(file))
    assert planes == sorted(original_rows("planes.csv"), key=lambda row: row["tailnum"])
    with (landing / "weather/date=2013-01-02/weather.csv").open(newline="") as file:
        weather = list(csv.DictReader(file))
    expected = [row for row in original_rows("weather.csv") if row["time_hour"].startswith("2013-01-02T")]
    assert len(expected) == 72
    assert weather == sorted(expected, key=lambda row: (row["time_hour"], row["origin"]))


def test_a_day_alone_is_the_same_as_within_more_days(three_days: tuple[Path, Delivery], tmp_path: Path) -> None:
    landing, delivery = three_days
    alone = lay_out(tmp_path, date(2013, 1, 2), date(2013, 1, 3))
    assert alone.days == tuple(d for d in delivery.days if d.day == date(2013, 1, 2))
    assert contents(tmp_path) == {name: c for name, c in contents(landing).items() if "date=2013-01-02" in name}


def test_the_last_days_deliver_what_is_late_and_a_header_alone_for_weather(tmp_path: Path) -> None:
    delivery = lay_out(tmp_path, date(2014, 1, 1), date(2014, 1, 3))
    assert Counter({d.day: d.rows for d in delivery.days if d.feed == "flight_events"}) == {
        date(2014, 1, 1): 361, LAST_DAY: 6,
    }  # fmt: skip
    assert delivery.rows("weather") == 0
    assert (tmp_path / "weather/date=2014-01-01/weather.csv").read_text().startswith("origin,year,month,day,hour,temp")


def test_days_without_source_data_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for start, end in ((date(2012, 12, 30), END), (date(2013, 12, 31), date(2014, 1, 4)), (START, START)):
        with pytest.raises(OutsideSourceDataError, match=f"choose a start of {FIRST_DAY} or later"):
            lay_out(tmp_path, start, end)
    assert list(tmp_path.iterdir()) == []


FLIGHTS, EVENTS = 56_102, 167_077


def one_row(source: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    return tuple(source.execute(query).fetchall()[0])


def test_each_event_of_a_flights_life_comes_at_its_own_time_and_in_its_order(source: duckdb.DuckDBPyConnection) -> None:
    lives = source.execute("""SELECT life, COUNT(*) FROM (
        SELECT string_agg(event, ' ' ORDER BY event_seq) AS life FROM flight_events GROUP BY flight_id)
        GROUP BY life ORDER BY life""").fetchall()
    assert lives == [
        ("scheduled cancelled", 1_094), ("scheduled departed", 135), ("scheduled departed arrived", 54_873),
    ]  # fmt: skip
    times = """SELECT COUNT(*) FILTER (WHERE status = event AND op = if(event_seq = 1, 'insert', 'update')
        AND event_at = CASE event WHEN 'scheduled' THEN sched_dep_at - INTERVAL 24 HOUR WHEN 'departed' THEN dep_at
            WHEN 'cancelled' THEN sched_dep_at WHEN 'arrived' THEN arr_at END) FROM flight_events"""
    assert one_row(source, times) == (EVENTS,)
    in_order = """SELECT COUNT(*) FILTER (WHERE event_at > previous) FROM (
        SELECT event_at, LAG(event_at) OVER (PARTITION BY flight_id ORDER BY event_seq) AS previous
        FROM flight_events)"""
    assert one_row(source, in_order) == (EVENTS - FLIGHTS,)


def test_an_event_tells_only_what_is_known_at_its_time(source: duckdb.DuckDBPyConnection) -> None:
    assert set(EVENT_FIELDS) == set(source.table("flight_events").columns)
    known = source.execute("""SELECT event, COUNT(tailnum) > 0, COUNT(dep_at) > 0, COUNT(dep_delay_min) > 0,
        COUNT(arr_at) > 0, COUNT(arr_delay_min) > 0, COUNT(air_time_min) > 0, bool_and(sched_arr_at IS NOT NULL)
        FROM flight_events GROUP BY event ORDER BY event""").fetchall()
    assert known == [
        ("arrived", True, True, True, True, True, True, True),
        ("cancelled", True, False, False, False, False, False, True),
        ("departed", True, True, True, False, False, False, True),
        ("scheduled", False, False, False, False, False, False, True),
    ]


def test_a_copy_has_the_same_content_and_comes_in_another_file(source: duckdb.DuckDBPyConnection) -> None:
    differs = """SELECT COUNT(*), COUNT(*) FILTER (WHERE first.delivery_day = second.delivery_day),
        COUNT(*) FILTER (WHERE (first.delivery_day, first.file_number) = (second.delivery_day, second.file_number)),
        COUNT(*) FILTER (WHERE second.delivery_day - first.delivery_day NOT IN (0, 1)),
        COUNT(*) FILTER (WHERE first.event_at <> second.event_at OR first.event_seq <> second.event_seq
                         OR first.dep_delay_min IS DISTINCT FROM second.dep_delay_min)
        FROM deliveries AS first JOIN deliveries AS second USING (flight_id, event)
        WHERE NOT first.is_second_copy AND second.is_second_copy"""
    copies, same_day, same_file, other_delay, other_content = one_row(source, differs)
    assert copies == pytest.approx(EVENTS * DOUBLED_SHARE, rel=0.03)
    assert same_day == pytest.approx(EVENTS * DOUBLED_SHARE / 2, rel=0.1)
    assert (same_file, other_delay, other_content) == (0, 0, 0)
    delivered = "SELECT COUNT(*), COUNT(DISTINCT (flight_id, event)) FROM deliveries WHERE {}is_second_copy"
    assert one_row(source, delivered.format("NOT ")) == (EVENTS, EVENTS), "every event once but for its copy"
    assert one_row(source, delivered.format("")) == (copies, copies)

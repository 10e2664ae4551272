from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from demo.source_system import FIRST_DAY, LAST_DAY, Delivery, OutsideSourceDataError, lay_out
from demo.source_system.flight_events import EVENT_FIELDS
from demo.source_system.nycflights import data_folder


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


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (date(2012, 12, 30), date(2013, 1, 2)),
        (date(2013, 12, 31), date(2014, 1, 4)),
        (date(2013, 1, 2), date(2013, 1, 2)),
    ],
)
def test_days_without_source_data_are_refused_before_anything_is_written(
    tmp_path: Path, start: date, end: date
) -> None:
    with pytest.raises(OutsideSourceDataError, match=f"choose a start of {FIRST_DAY} or later"):
        lay_out(tmp_path, start, end)
    assert list(tmp_path.iterdir()) == []

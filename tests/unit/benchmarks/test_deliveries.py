"""The two deliveries that the year is loaded by."""

from __future__ import annotations

import gzip
from pathlib import Path

from benchmarks import deliveries
from benchmarks.deliveries import DAY, RECENT, YEAR, delivered_lines, one_day, whole_year, write_delivery


def deliver(folder: Path, day: str, number: int, *lines: str) -> None:
    path = folder / "flight_events" / f"date={day}" / f"flight_events_{number:02}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def test_events_come_in_the_order_of_delivery(tmp_path: Path) -> None:
    deliver(tmp_path, "2013-01-02", 0, "d")
    deliver(tmp_path, "2013-01-01", 1, "c")
    deliver(tmp_path, "2013-01-01", 0, "a", "b")
    assert delivered_lines(tmp_path) == [b"a\n", b"b\n", b"c\n", b"d\n"]


def test_a_delivery_holds_its_lines_in_files_of_bounded_size(tmp_path: Path) -> None:
    lines = [f"{number}\n".encode() for number in range(deliveries._LINES_A_FILE + 1)]
    write_delivery(tmp_path, "2013-05-01", lines)
    files = sorted((tmp_path / "flight_events" / "date=2013-05-01").iterdir())
    assert [file.name for file in files] == ["flight_events_00.json.gz", "flight_events_01.json.gz"]
    assert delivered_lines(tmp_path) == lines


def test_a_year_that_is_complete_is_not_laid_out_again(tmp_path: Path) -> None:
    (tmp_path / "complete").touch()
    assert whole_year(tmp_path, tmp_path / "source") == tmp_path
    assert not (tmp_path / "source").exists()


def test_the_day_is_as_the_source_system_delivers_it(tmp_path: Path) -> None:
    lines = delivered_lines(one_day(tmp_path))
    assert len(lines) == 2119
    assert YEAR < DAY < RECENT

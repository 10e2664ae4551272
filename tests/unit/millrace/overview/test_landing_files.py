"""The landing files of a table in parts, the last changed first."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from millrace.contracts.file_status import FileStatus
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact, Stream, Winner
from millrace.overview.landing_files import FileFilter, LandingFiles, landing_files
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import day, intent_of

ORDERS = Stream("bronze.orders")


def fact(name: str, **more: str) -> FileFact:
    return FileFact(path=f"orders/{name}.json", size=9, mtime_ns=1, checksum=name, **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LakehousePaths(tmp_path))


def load(ledger: Ledger, number: int, *names: str) -> None:
    """Load files in the batch of a day; each has one row."""
    files = [fact(name) for name in names]
    intent = intent_of("id", number, stream=ORDERS)
    ledger.record_intent(intent, files)
    winner = Winner(intent, number)
    ledger.record_committed([winner])
    ledger.record_closed(
        winner, RowCounts(read=1, applied=1), {file.path: FileRows(read=1, written=1) for file in files}
    )


def files(ledger: Ledger, count: int = 100, **wanted: object) -> LandingFiles:
    return landing_files(ledger, "bronze.orders", "id", FileFilter(**wanted), count)  # type: ignore[arg-type]


def names(part: LandingFiles) -> list[str]:
    return [file.path.removeprefix("orders/").removesuffix(".json") for file in part.files]


def test_the_last_changed_file_comes_first_and_a_filter_leaves_those_of_a_day_or_of_a_folder(ledger: Ledger) -> None:
    assert files(ledger).answer == "No run has seen a landing file yet."
    load(ledger, 1, "a1", "b1")
    load(ledger, 2, "a2")
    load(ledger, 3, "b1")
    part = files(ledger)
    assert names(part) == ["b1", "a2", "a1"]
    assert (part.files[0].batch_seq, part.files[0].rows) == (3, FileRows(read=1, written=1))
    assert part.answer == "No file failed: every file below is loaded."
    assert names(files(ledger, day=date(2013, 1, 2))) == ["a2"]
    assert names(files(ledger, day=date(2013, 1, 1))) == ["a1"], "b1 was loaded again, for another day"
    assert names(files(ledger, prefix="orders/a")) == ["a2", "a1"]
    assert files(ledger, prefix="' OR 1=1").files == []


def test_the_parts_together_have_each_file_once(ledger: Ledger) -> None:
    for number in range(1, 8):
        load(ledger, number, f"x{number}", f"y{number}", "again")
    seen, before, parts = list[str](), None, 0
    while parts == 0 or before:
        part = files(ledger, 4, before=before)
        assert 0 < len(part.files) <= 6, "files with events of one moment stay together"
        seen, before, parts = seen + names(part), part.next_before, parts + 1
    assert parts > 2
    assert sorted(seen) == sorted([f"{kind}{number}" for kind in "xy" for number in range(1, 8)] + ["again"])


def test_failed_files_are_always_there_with_the_reason(ledger: Ledger) -> None:
    load(ledger, 1, "a")
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(2), [fact("bad", defect="cut gzip")])
    part = files(ledger, prefix="orders/a")
    assert part.failures["orders/bad.json"].file.defect == "cut gzip"
    assert part.answer == "1 landing file could not be loaded: the records in it are missing."
    assert files(ledger).files[0].status is FileStatus.FAILED
    ledger.record_files(FileEvent.GIVEN_UP, "bronze.orders", "id", day(2), [fact("bad", defect="ann: never mind")])
    assert files(ledger).answer == "A person gave up 1 file; no other file failed."

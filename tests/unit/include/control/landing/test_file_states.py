"""The state of each landing file, from its events in the ledger."""

from __future__ import annotations

from dataclasses import replace

from include.contracts.file_status import FileStatus
from include.contracts.job.report import FileRows, RowCounts
from include.control.landing.file_states import FileState, file_states
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Intent, Stream, Winner
from tests.support.ledger.delta_tables import day, intent_of

ORDERS = Stream("bronze.orders")
FILE = FileFact(path="orders/date=2013-01-01/a.json", size=9, mtime_ns=1, checksum="aa")
ROWS = FileRows(read=5, written=3, rescued=1, quarantined=1, dropped=1)
ROW_COUNTS = RowCounts(read=5, applied=3, quarantined=1, dropped=1, inserted=3)


def attempt(ledger: Ledger, batch_seq: int = 1, *files: FileFact) -> Intent:
    """Record an intent to load the files, which may never commit."""
    intent = intent_of("id", batch_seq, stream=ORDERS)
    ledger.record_intent(intent, files or (FILE,))
    return intent


def state(ledger: Ledger) -> FileState:
    """Return the state of the only file in the ledger."""
    [only] = file_states(ledger, "bronze.orders", "id")
    return only


def test_a_file_is_loaded_as_soon_as_its_attempt_won_and_its_rows_follow(ledger: Ledger) -> None:
    assert file_states(ledger, "bronze.orders", "id") == []
    attempt(ledger)
    planned = state(ledger)
    assert (planned.status, planned.tries, planned.batch_seq, planned.version) == (FileStatus.PLANNED, 1, None, None)
    assert (planned.size, planned.checksum, planned.interval) == (9, "aa", day(1))
    winner = Winner(attempt(ledger), 7)
    attempt(ledger)
    ledger.record_committed([winner])
    committed = state(ledger)
    assert (committed.status, committed.tries, committed.batch_seq, committed.version) == (FileStatus.LOADED, 3, 1, 7)
    assert committed.rows is None

    ledger.record_closed(winner, ROW_COUNTS, {FILE.path: ROWS})
    assert state(ledger).rows == ROWS
    assert state(ledger).tries == 3

    attempt(ledger, 2, *(replace(FILE, path=name) for name in ("b.json", "a.json")))
    ledger.record_intent(intent_of("other id", 1, stream=ORDERS), [replace(FILE, path="c.json")])
    assert [found.path for found in file_states(ledger, "bronze.orders", "id")] == ["a.json", "b.json", FILE.path]


def test_a_broken_file_is_failed_with_its_reason_until_it_is_loaded_and_again_when_its_new_content_is_broken(
    ledger: Ledger,
) -> None:
    broken = replace(FILE, defect="truncated gzip", checksum="bad")
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [broken])
    found = state(ledger)
    assert (found.status, found.reason, found.interval) == (FileStatus.FAILED, "truncated gzip", day(1))

    winner = Winner(attempt(ledger), 2)
    ledger.record_committed([winner])
    loaded = state(ledger)
    assert (loaded.status, loaded.reason, loaded.checksum, loaded.tries) == (FileStatus.LOADED, "", "aa", 2)
    assert loaded.seen_at == found.seen_at

    ledger.record_closed(winner, ROW_COUNTS, {FILE.path: ROWS})
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), [broken])
    again = state(ledger)
    assert (again.status, again.reason, again.checksum) == (FileStatus.FAILED, "truncated gzip", "bad")
    assert (again.batch_seq, again.version, again.rows) == (1, 2, ROWS)


def test_an_unreachable_file_is_not_failed_and_is_loaded_after_it_was_read(ledger: Ledger) -> None:
    slow = replace(FILE, checksum="", defect="HTTP 503: slow down")
    ledger.record_files(FileEvent.UNREACHABLE, "bronze.orders", "id", day(1), [slow])
    found = state(ledger)
    assert (found.status, found.reason, found.tries) == (FileStatus.UNREACHABLE, "HTTP 503: slow down", 0)
    assert ledger.failures("bronze.orders", "id") == {}

    ledger.record_committed([Winner(attempt(ledger), 2)])
    assert (state(ledger).status, state(ledger).reason, state(ledger).tries) == (FileStatus.LOADED, "", 1)

    ledger.record_files(FileEvent.UNREACHABLE, "bronze.orders", "id", day(1), [replace(slow, mtime_ns=2)])
    assert (state(ledger).status, state(ledger).batch_seq) == (FileStatus.UNREACHABLE, 1)
    ledger.record_files(FileEvent.SEEN, "bronze.orders", "id", day(1), [replace(FILE, mtime_ns=2)])
    assert (state(ledger).status, state(ledger).batch_seq, state(ledger).reason) == (FileStatus.LOADED, 1, "")

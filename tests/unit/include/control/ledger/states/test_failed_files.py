"""The landing files that could not be loaded, in the state of their table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.control.ledger.states.failed_files import MOST_FILES, FailedFiles
from include.control.ledger.states.table_state import TableStates
from include.control.log.batch import BatchSources, FileFact
from include.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, load_batch

SPEC = bronze_spec()


def failed_file(number: int, checksum: str = "aa") -> FileFact:
    return FileFact(path=f"orders/{number}.json", size=9, mtime_ns=1, checksum=checksum, defect="line 7 is no JSON")


def record(root: Path, event: FileEvent, *files: FileFact) -> FailedFiles:
    paths = LakehousePaths(root)
    Ledger(paths).record_files(event, SPEC.table, table_id(paths.table(SPEC.table)), day(), files)
    return stored(root)


def stored(root: Path) -> FailedFiles:
    part = TableStates(LakehousePaths(root)).read(SPEC.table, FailedFiles)
    assert part is not None
    return part


def test_a_file_is_given_up_after_its_last_attempt_and_no_more_once_it_is_loaded(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC)
    bad, other = failed_file(1), failed_file(2)
    for attempt in (1, 2, 3):
        part = record(tmp_path, FileEvent.FAILED, bad)
        assert (part.given_up(3), part.attempts) == (int(attempt == 3), {attempt: 1})
    assert [(file.path, file.reason) for file in part.files] == [(bad.path, bad.defect)]
    assert record(tmp_path, FileEvent.FAILED, other).attempts == {3: 1, 1: 1}
    assert record(tmp_path, FileEvent.REPLAYED, bad).given_up(3) == 0
    good = replace(bad, checksum="bb", defect="")
    load_batch(tmp_path, SPEC, files=(good,), sources=BatchSources(files=1))
    assert stored(tmp_path).attempts == {1: 1}
    assert record(tmp_path, FileEvent.GIVEN_UP, other).attempts == {}, "a file that a person gave up needs nobody"


def test_the_state_names_some_of_many_files_and_counts_all(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC)
    part = record(tmp_path, FileEvent.FAILED, *(failed_file(number) for number in range(500)))
    assert (len(part.files), part.attempts) == (MOST_FILES, {1: 500})

"""Row conservation: counts against each other, and against the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.contracts.job.report import RowCounts
from millrace.control.gates.conservation import check_conservation
from millrace.control.ledger.states.measures import table_rows
from millrace.errors import ConservationError
from tests.support.ledger.delta_tables import append, commit, delete_all, intent_of, optimize


@pytest.mark.parametrize(
    ("committed", "rows"),
    [
        (3, RowCounts(read=9, applied=3, unchanged=2, superseded=1, quarantined=2, dropped=1, inserted=3)),
        (3, RowCounts(read=9, applied=9, inserted=5, updated=2, deleted=2)),
        (0, RowCounts(read=4, unchanged=4)),
    ],
)
def test_counts_that_agree_with_the_batch_itself_are_accepted_whatever_was_committed_before_and_since(
    table: Path, committed: int, rows: RowCounts
) -> None:
    append(table, rows=10)
    winner = commit(table, intent_of("id"), committed)
    append(table, rows=20)
    check_conservation(table, winner, rows)


NO_SUM = r"^silver\.flights version 2, batch 1: the row counts do not add up: \{'read': .*\n.* is not certified"
GREW = "batch 1: the table went from 5 to 8 rows, but {} were inserted and {} deleted"


@pytest.mark.parametrize(
    ("counts", "cause"),
    [
        ({"read": 4}, NO_SUM),
        ({"read": 2}, NO_SUM),
        ({"inserted": 2}, GREW.format(2, 0)),
        ({"deleted": 1}, GREW.format(3, 1)),
        ({"inserted": 4, "deleted": 2}, GREW.format(4, 2)),
    ],
)
def test_counts_that_do_not_add_up_or_differ_from_the_growth_of_the_table_are_refused(
    table: Path, counts: dict[str, int], cause: str
) -> None:
    append(table, rows=5)
    rows = RowCounts.model_validate({"read": 3, "applied": 3, "inserted": 3, **counts})
    with pytest.raises(ConservationError, match=cause):
        check_conservation(table, commit(table, intent_of("id"), 3), rows)


def test_the_rows_of_each_version_are_those_of_its_files(table: Path) -> None:
    append(table, rows=5)
    append(table, rows=7)
    optimize(table)
    delete_all(table)
    assert [table_rows(table, version) for version in range(5)] == [0, 5, 12, 12, 0]

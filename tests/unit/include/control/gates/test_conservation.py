"""Row conservation: counts against each other, and against the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.report import RowCounts
from include.control.gates.conservation import check_conservation
from include.control.ledger.states.measures import table_rows
from include.control.log.batch import Winner
from include.errors import ConservationError
from tests.support.ledger.delta_tables import append, commit, create_table, delete_all, intent_of, optimize


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path / "flights")
    append(tmp_path / "flights", rows=5)
    return tmp_path / "flights"


def batch(table: Path, rows: int) -> Winner:
    return commit(table, intent_of("id"), rows)


def test_the_rows_of_each_version_are_those_of_its_files(table: Path) -> None:
    append(table, rows=7)
    optimize(table)
    delete_all(table)
    assert [table_rows(table, version) for version in range(5)] == [0, 5, 12, 12, 0]


@pytest.mark.parametrize(
    "rows",
    [
        RowCounts(read=3, applied=3, inserted=3),
        RowCounts(read=9, applied=3, unchanged=2, superseded=1, quarantined=2, dropped=1, inserted=3),
        RowCounts(read=9, applied=9, inserted=5, updated=2, deleted=2),
    ],
)
def test_counts_that_agree_are_accepted(table: Path, rows: RowCounts) -> None:
    check_conservation(table, batch(table, 3), rows)


def test_a_batch_that_changes_nothing_is_conserved(table: Path) -> None:
    check_conservation(table, batch(table, 0), RowCounts(read=4, unchanged=4))


@pytest.mark.parametrize("counts", [{"read": 4}, {"read": 2}, {"unchanged": 1}, {"quarantined": 1}])
def test_counts_that_do_not_add_up_are_refused(table: Path, counts: dict[str, int]) -> None:
    rows = RowCounts.model_validate({"read": 3, "applied": 3, "inserted": 3, **counts})
    with pytest.raises(ConservationError) as raised:
        check_conservation(table, batch(table, 3), rows)
    said = str(raised.value)
    assert said.startswith("silver.flights version 2, batch 1: the row counts do not add up: {'read': ")
    assert "The version is not certified" in said


@pytest.mark.parametrize("counts", [{"inserted": 2}, {"inserted": 4}, {"deleted": 1}, {"inserted": 4, "deleted": 2}])
def test_a_table_that_grew_otherwise_than_counted_is_refused(table: Path, counts: dict[str, int]) -> None:
    rows = RowCounts.model_validate({"read": 3, "applied": 3, "inserted": 3, **counts})
    expected = (
        rf"batch 1: the table went from 5 to 8 rows, but {rows.inserted} were inserted and {rows.deleted} deleted"
    )
    with pytest.raises(ConservationError, match=expected):
        check_conservation(table, batch(table, 3), rows)


def test_rows_are_counted_around_the_batch_itself_whatever_was_committed_since(table: Path) -> None:
    append(table, rows=10)
    winner = batch(table, 3)
    append(table, rows=20)
    check_conservation(table, winner, RowCounts(read=3, applied=3, inserted=3))

"""`lakehouse quarantine fix` and `replay`: the requests to their driver, and the requests that they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from millrace.cli.quarantine.jobs import downstream_selection, request_for
from millrace.contracts.interval import Interval
from millrace.contracts.job.requests import QuarantineRequest, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.log.batch import BatchSources, FileFact
from millrace.errors import BadInputError, ExitCode, SpecError, UnknownNameError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, bronze_spec, silver_document, silver_spec, write_specs
from tests.support.ledger.delta_tables import day, sources_reading
from tests.support.ledger.quarantine_rows import FIRST, quarantine, refused
from tests.support.ledger.small_lake import commit_sources, judge

ORDERS = "silver.orders"
ROW = (FileFact("a.json", 1, 1),)


@pytest.fixture(autouse=True)
def refused_rows(settings: Settings) -> None:
    quarantine(LakehousePaths(settings.root), ORDERS, refused(10, "too low"), refused(20, "too low", of_day=2))


def request_of(settings: Settings, *ids: str, table: str = ORDERS, **more: Any) -> QuarantineRequest:
    days, reason = more.pop("days", (None, None)), more.pop("reason", "")
    options = {"everything": False, "assign": None, "edited": None, "why": "so", **more}
    return request_for(table, settings, ids, days, reason, **options)


def test_rows_are_selected_by_the_beginnings_of_their_ids_or_by_reason_and_interval(settings: Settings) -> None:
    request = request_of(settings, "r1", assign=["amount = abs(amount)", "day=date '2013-01-01'"])
    assert request.rows.ids == ("r10",)
    assert request.assign == {"amount": "abs(amount)", "day": "date '2013-01-01'"}
    assert (request.why, request.how) == ("so", "amount = abs(amount); day = date '2013-01-01'")
    request = request_of(settings, reason="low", days=("2013-01-01", None))
    assert (request.rows.ids, request.rows.reason, request.rows.starts) == ((), "low", (FIRST,))
    assert not request.has_fixes
    assert request.rows.statuses == PENDING
    assert request_of(settings, statuses=[RowStatus.FIXED]).rows == RowFilter(statuses=(RowStatus.FIXED,))


def test_a_file_of_edited_rows_selects_its_rows(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "edited.jsonl"
    file.write_text('{"id": "r20", "record": {"amount": 7}}\n')
    request = request_of(settings, edited=file)
    assert (request.rows.ids, request.edited, request.how) == (("r20",), file.read_text(), "edited")
    with pytest.raises(typer.BadParameter, match="--rows alone selects"):
        request_of(settings, "r1", edited=file)
    file.write_text('{"id": "r99", "record": {"amount": 7}}\n')
    with pytest.raises(UnknownNameError, match="has no row 'r99'"):
        request_of(settings, edited=file)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, typer.BadParameter, "state which rows"),
        ({"statuses": [RowStatus.REPLAYED]}, typer.BadParameter, "only a row that is open or fixed can be tried"),
        ({"statuses": [RowStatus.OPEN], "assign": ["a = 1"]}, typer.BadParameter, "for a replay without a fix"),
        ({"everything": True, "assign": ["abs(amount)"]}, typer.BadParameter, "is not an assignment"),
        ({"everything": True, "table": "gold.revenue_daily"}, BadInputError, "fix the rows there"),
        ({"everything": True, "table": "silver.ordres"}, SpecError, "silver.orders"),
    ],
)
def test_a_wrong_request_is_refused_before_spark_starts(
    settings: Settings, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        request_of(settings, **options)


def test_a_fix_needs_a_change_and_the_message_without_spark_names_the_way_out(lakehouse: Lakehouse) -> None:
    answer = lakehouse("quarantine", "fix", ORDERS, "--all")
    assert (answer.exit_code, "state a fix" in answer.stderr) == (2, True)
    answer = lakehouse("quarantine", "replay", ORDERS, "--all")
    assert (answer.exit_code, "lakehouse jars" in answer.stderr) == (ExitCode.SPARK_UNAVAILABLE, True)


def test_downstream_tables_run_for_the_newest_interval_that_they_have_not_read_and_not_for_today(
    settings: Settings,
) -> None:
    bronze, silver = bronze_spec(table="bronze.returns"), silver_spec(table="silver.returns", source="bronze.returns")
    write_specs(settings.tables, bronze_document(bronze.table), silver_document(silver.table, source=bronze.table))

    def load(number: int, **replay: Any) -> int:
        loaded = commit_sources(settings.root, bronze, day(number), "run", BatchSources(**replay), ROW)
        judge(settings.root, bronze, loaded)
        return loaded.version

    def intervals() -> tuple[Interval, ...]:
        selection = downstream_selection(bronze.table, settings)
        assert selection
        assert [spec.table for spec in selection.specs] == [silver.table]
        return selection.intervals

    assert downstream_selection(bronze.table, settings) is None, "there is no batch yet"
    assert downstream_selection(silver.table, settings) is None, "no table reads it"
    load(1)
    read = load(2)
    assert intervals() == (day(2),), "silver has read neither"
    sources = sources_reading(settings.root, bronze__returns=(None, read))
    judge(settings.root, silver, commit_sources(settings.root, silver, day(2), "run", sources))
    load(1, replay="of a row")
    assert intervals() == (day(1),), "the replayed row is of day 1"
    load(3)
    load(1, replay="of another row")
    assert intervals() == (day(3),)
    sources = sources_reading(settings.root, bronze__returns=(read, read + 3))
    judge(settings.root, silver, commit_sources(settings.root, silver, day(3), "run", sources))
    assert intervals() == (day(1),), "nothing is new: the last batch says which"

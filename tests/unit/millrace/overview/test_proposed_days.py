"""The days that a backfill plan proposes: the last week, or the newest days with data."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.states.recent_batches import RecentBatch
from millrace.overview.proposed_days import proposed_days
from millrace.overview.tables.table_overview import TableOverview
from tests.support.documents.specs import bronze_spec

TODAY = date(2026, 11, 26)
LAST_WEEK = (date(2026, 11, 19), date(2026, 11, 25))
DAYS = st.dates(date(2013, 1, 1), date(2013, 3, 1)) | st.dates(date(2026, 11, 1), date(2026, 12, 9))


def loaded(*days: date) -> TableOverview:
    """A table with a batch for each of these days."""
    starts = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    ends = [start + timedelta(days=1) for start in starts]
    batches = [
        RecentBatch(
            stream="main", batch_seq=1, version=1, interval_start=start, interval_end=end, run_id="r", at=end,
            rows=RowCounts(), token="t",
        )
        for start, end in zip(starts, ends, strict=True)
    ]  # fmt: skip
    return TableOverview(bronze_spec(), batches=batches)


def deliver(landing: Path, *days: date) -> str:
    for day in days:
        folder = landing / "orders" / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.json").write_text("{}")
    return str(landing)


@settings(max_examples=50)
@given(st.lists(DAYS, max_size=9), st.lists(DAYS, max_size=3, unique=True))
def test_the_window_is_the_week_up_to_the_newest_day_that_is_over_and_has_data(
    tmp_path_factory: pytest.TempPathFactory, batches: list[date], files: list[date]
) -> None:
    landing = deliver(tmp_path_factory.mktemp("landing"), *files)
    first, last = proposed_days([loaded(*batches)], landing, TODAY, lambda: 0.0)
    is_listed = not any(LAST_WEEK[0] <= day <= LAST_WEEK[1] for day in batches)
    over = [day for day in (batches + files if is_listed else batches) if day < TODAY]
    assert last == max(over, default=LAST_WEEK[1])
    assert first == max(min(over, default=LAST_WEEK[0]), last - timedelta(days=6))


def test_files_that_no_batch_has_loaded_are_data_too_and_so_are_none_at_all(tmp_path: Path) -> None:
    landing = deliver(tmp_path, *(date(2013, 1, day) for day in range(1, 10)))
    behind = loaded(date(2013, 1, 1))
    assert proposed_days([behind], landing, TODAY) == (date(2013, 1, 3), date(2013, 1, 9))
    assert proposed_days([behind], landing, TODAY, count().__next__) == (date(2013, 1, 1),) * 2, "no time to list"
    assert proposed_days([loaded()], str(tmp_path / "nowhere"), TODAY) == LAST_WEEK

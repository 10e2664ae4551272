"""Two replays of the same rows at the same moment: each ends well, and every row is merged once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from millrace.contracts.job.args import Job
from tests.support.killed_drivers.batches import CleanBatch, succeeded
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import outcome
from tests.support.killed_drivers.scenarios import REQUEST
from tests.support.lakehouse import Lakehouse, copy_lakehouse


@pytest.mark.slow
def test_two_replays_of_the_same_rows_at_once_bring_each_row_once(
    pair: tuple[Drivers, Drivers], clean: Callable[[str], CleanBatch], tmp_path: Path
) -> None:
    batch = clean("replay of silver rows")
    shop = copy_lakehouse(batch.before, tmp_path / "shop")
    beside = Lakehouse(shop.folder, reports=shop.reports[:])
    beside.reports.append(batch.report)

    with ThreadPoolExecutor(2) as threads:
        ends = threads.map(
            lambda drivers, one: drivers.run(one, batch.table, job=Job.QUARANTINE_REPLAY, request=REQUEST),
            pair,
            (shop, beside),
        )
        assert [succeeded(end).rows.are_conserved for end in ends] == [True, True]

    end = outcome(shop.paths, batch.table)
    assert end["rows"] == batch.end["rows"]
    assert [row[:2] for row in end["quarantined"]] == [row[:2] for row in batch.end["quarantined"]]

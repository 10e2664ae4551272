"""A run reads only the files of a source that can have rows of the touched values, also of truncated times."""

from __future__ import annotations

from spark_jobs.delta_io.reads import read_version
from spark_jobs.runtime.session import own_session
from spark_jobs.transforms.touched_rows import gives_touched
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"


TOUCHED = {
    "day": "2013-01-04",
    "to_date(event_at)": "2013-01-04",
    "date_trunc('hour', event_at)": "2013-01-04 00:00:00",
    "to_date(from_utc_timestamp(event_at, 'America/New_York'))": "2013-01-03",
}


def test_files_without_a_touched_row_are_not_read(lakehouse: Lakehouse) -> None:
    days = (1, 4, 8)
    for number in days:
        given(lakehouse, SILVER, [order(f"{number}{key}", 1, of_day=number) for key in range(3)], number)
    with own_session({}) as session:
        rows = read_version(session, lakehouse.paths.table(SILVER), len(days))
        assert len(rows.inputFiles()) == len(days)
        for expression, value in TOUCHED.items():
            found = rows.where(gives_touched(expression, rows, [value]))
            assert len(found.inputFiles()) == 1, expression
            assert sorted(row["order_id"] for row in found.collect()) == ["o40", "o41", "o42"], expression

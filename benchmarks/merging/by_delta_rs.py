"""delta-rs: the latest event of each order of the day, merged by key; only files within the keys' bounds are read.

by_delta_rs.py LAKE DAY
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.merging.orders import COLUMNS
from demo.reading import delta_reader


def merge(lake: str, day: str) -> None:
    """Merge the day's events into silver; a late event changes nothing."""
    latest = _latest_events(f"{lake}/bronze/orders", day)
    low, high = (pc.min_max(latest["id"])[bound].as_py() for bound in ("min", "max"))
    silver = DeltaTable(f"{lake}/silver/orders").merge(
        latest,
        f"t.id = s.id AND t.id >= {low} AND t.id <= {high}",
        source_alias="s",
        target_alias="t",
        streamed_exec=False,
    )
    silver.when_matched_update_all("s.ts > t.ts").when_not_matched_insert_all().execute()


def _latest_events(bronze: str, day: str) -> pa.Table:
    arrived = f"_interval_start = TIMESTAMPTZ '{day} 00:00:00+00'"
    newest = "QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts DESC) = 1"
    with delta_reader() as source:
        found = source.execute(f"SELECT {', '.join(COLUMNS)} FROM delta_scan('{bronze}') WHERE {arrived} {newest}")
        return found.to_arrow_table()


if __name__ == "__main__":
    merge(*sys.argv[1:])

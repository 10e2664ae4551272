"""A bronze table of commits of given sizes, and the batches in which a silver table reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import BatchSources
from include.control.planning.source_ranges import limit_batch
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import ROWS

BRONZE = "bronze.orders"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def write_bronze(folder: Path, sizes: list[int]) -> LakehousePaths:
    """Make a lakehouse whose bronze table is empty at version 0; each later version adds the next size of rows."""
    paths = LakehousePaths(folder)
    table = str(paths.table(BRONZE))
    DeltaTable.create(table, schema=ROWS)
    for size in sizes:
        write_deltalake(table, pa.table({"n": list(range(size))}, schema=ROWS), mode="append")
        _add_row_count(paths.table(BRONZE), size)
    return paths


def _add_row_count(table: Path, rows: int) -> None:
    log = max((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["operationMetrics"] = {"numOutputRows": str(rows)}
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def batch_ranges(
    spec: SilverSpec, paths: LakehousePaths, after: int, readable_since: datetime, upto: int | None = None
) -> list[tuple[int, int]]:
    """Return the ranges of the batches that read all versions after `after`."""
    newest = DeltaTable(str(paths.table(BRONZE))).version() if upto is None else upto
    ranges: list[tuple[int, int]] = []
    while after < newest:
        sources = BatchSources(ranges={BRONZE: (after, newest)})
        end = limit_batch(spec, sources, paths, readable_since).ranges[BRONZE][1]
        ranges.append((after, end))
        after = end
    return ranges

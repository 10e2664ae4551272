"""The quarantine as people ask of it: which reasons, how many rows, and the rows themselves. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from include.contracts.interval import Interval
from include.paths import LakehousePaths

_SINCE, _BATCH = "_interval_start", "_batch_seq"


@dataclass(frozen=True)
class Refusal:
    """The rows of one table that were refused for one reason; a row with two reasons counts for both.

    Attributes:
        reason: `rule: reason`, as the spec states it.
        rows: how many.
        first: start of the first interval that brought one.
        last: start of the last one.
        batch_seq: the last batch that refused one.
    """

    reason: str
    rows: int
    first: datetime
    last: datetime
    batch_seq: int


@dataclass(frozen=True)
class RefusedRow:
    """One row.

    Attributes:
        source: the landing file it came from, or the Kafka topic and partition; empty below bronze.
        position: its record number in that file, or its Kafka offset, where known.
        reasons: why it was refused.
        record: the row as JSON, or the text that could not be parsed.
        batch_seq: the batch that refused it.
    """

    source: str
    position: int | None
    reasons: tuple[str, ...]
    record: str
    batch_seq: int


def refusals(table: str, paths: LakehousePaths) -> list[Refusal]:
    """The reasons for which rows of the table are in quarantine, the commonest first."""
    rows = _rows(table, paths, ["reasons", _SINCE, _BATCH])
    parents = pc.list_parent_indices(rows["reasons"])
    flat = rows.select([_SINCE, _BATCH]).take(parents).append_column("reason", pc.list_flatten(rows["reasons"]))
    wanted = [("reason", "count"), (_SINCE, "min"), (_SINCE, "max"), (_BATCH, "max")]
    found = [
        Refusal(one["reason"], one["reason_count"], one[f"{_SINCE}_min"], one[f"{_SINCE}_max"], one[f"{_BATCH}_max"])
        for one in flat.group_by("reason").aggregate(wanted).to_pylist()
    ]
    return sorted(found, key=lambda one: (-one.rows, one.reason))


def refused_rows(
    table: str, paths: LakehousePaths, intervals: Sequence[Interval] = (), reason: str = ""
) -> list[RefusedRow]:
    """The quarantined rows of the table, the newest batch first.

    Args:
        table: the table that refused them.
        paths: the lakehouse.
        intervals: only rows of these; all for none.
        reason: only rows with a reason that has this text in it.
    """
    starts = {interval.start for interval in intervals}
    columns = ["source", "position", "reasons", "record", _BATCH, _SINCE]
    found = [
        RefusedRow(row["source"] or "", row["position"], tuple(row["reasons"]), row["record"], row[_BATCH])
        for row in _rows(table, paths, columns).to_pylist()
        if (not starts or row[_SINCE] in starts) and any(reason in one for one in row["reasons"])
    ]
    return sorted(found, key=lambda row: (-row.batch_seq, row.source, row.position or 0, row.record))


def _rows(table: str, paths: LakehousePaths, columns: list[str]) -> pa.Table:
    path = str(paths.quarantine(table))
    if not DeltaTable.is_deltatable(path):
        return _NONE.select(columns)
    return DeltaTable(path).to_pyarrow_table(columns=columns)


_NONE = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.int64()),
        ("reasons", pa.list_(pa.string())),
        ("record", pa.string()),
        (_BATCH, pa.int64()),
        (_SINCE, pa.timestamp("us", tz="UTC")),
    ]
).empty_table()

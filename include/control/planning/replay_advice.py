"""Whether a replay has anything to do, before Spark is started for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from include.contracts.interval import Interval
from include.contracts.spec.table_spec import AnySpec
from include.control.ops_tables import OpsTables
from include.control.planning.planner import is_complete, stream_position
from include.control.quarantine.rows import QuarantinedRow
from include.paths import LakehousePaths


def replay_interval(spec: AnySpec, rows: Sequence[QuarantinedRow], paths: LakehousePaths) -> Interval | None:
    """The days that brought the rows, under which their replay is reported; they decide nothing.

    Without rows those of the table's last batch, where a driver that died left something of it undone; else None:
    there is nothing to do.
    """
    if rows:
        starts = [row.interval_start for row in rows]
        return Interval(start=min(starts), end=max(starts) + timedelta(days=1))
    ops = OpsTables(paths)
    position = stream_position(spec, paths, ops.ledger)
    last = position.last if position else None
    if last is None or is_complete(spec, last, ops):
        return None
    return Interval(start=last.intent.interval_start, end=last.intent.interval_end)

"""The work of a replay, known before Spark starts for it."""

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
    """Return the period under which a replay of the rows is reported; it decides nothing else.

    With rows, the period covers the days that delivered them. Without rows, it is the interval of the last batch if a
    dead driver left that batch incomplete, and otherwise None: there is nothing to do.
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

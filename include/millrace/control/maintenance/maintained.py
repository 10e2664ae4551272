"""When a table was last maintained: a part of its state, which the commits of its log after it complete (ADR 25)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from millrace.contracts.interval import Instant
from millrace.control.ledger.states.table_state import StatePart, tolerate_state_errors
from millrace.control.log.delta_log import Commit, remaining_commits
from millrace.control.log.stored_tables import identity, open_table
from millrace.control.ops_tables import OpsTables


class Rewritten(NamedTuple):
    """The work of one run of OPTIMIZE.

    Attributes:
        size: the bytes of the files that it replaced.
        seconds: how long it took, without its waits.
    """

    size: int
    seconds: float


class Maintained(StatePart):
    """What the log of a table, up to a version, says of its maintenance.

    Attributes:
        upto: the version.
        optimized_at: when OPTIMIZE last committed; None if the log does not know.
        ordered_at: when the table was last Z-ordered; None if the log does not know.
        ordered_by: the columns by which it was.
        vacuumed_at: when VACUUM last ended; None if the log does not know.
        planned_at: when a run last began an action of the plan for the table, whatever came of it.
        searched: the version with whose rows the deleted keys were last compared.
        rewritten: the work of the last run of OPTIMIZE; None if none is known.
    """

    upto: int = -1
    optimized_at: Instant | None = None
    ordered_at: Instant | None = None
    ordered_by: tuple[str, ...] = ()
    vacuumed_at: Instant | None = None
    planned_at: Instant | None = None
    searched: int = -1
    rewritten: Rewritten | None = None

    def ordered_ms(self, columns: Sequence[str]) -> int:
        """Return when the table was last Z-ordered by some columns, in ms; 0 if it was not, or by others since."""
        is_by_them = self.ordered_at is not None and columns and tuple(columns) == self.ordered_by
        return round(self.ordered_at.timestamp() * 1000) if self.ordered_at and is_by_them else 0

    def after(self, commit: Commit) -> Maintained:
        """Return what is known after one more commit."""
        new: dict[str, Any] = {"upto": commit.version}
        match commit.operation:
            case "OPTIMIZE":
                new["optimized_at"] = commit.at
                if columns := _z_ordered(commit.parameters):
                    new |= {"ordered_at": commit.at, "ordered_by": columns}
            case "VACUUM END":
                new["vacuumed_at"] = commit.at
        return self.model_copy(update=new)


def completed(stored: Maintained | None, known: Maintained) -> Maintained:
    """Return what is stored, with what a later reading of the log knows; None is no reading."""
    if stored is None or stored.table_id != known.table_id:
        return known
    of_log = {"upto", "optimized_at", "ordered_at", "ordered_by"} if known.upto > stored.upto else set()
    new = {name: getattr(known, name) for name in of_log}
    ends = [at for at in (stored.vacuumed_at, known.vacuumed_at) if at]
    return stored.model_copy(update={**new, "vacuumed_at": max(ends, default=None)})


def maintained(ops: OpsTables, table: str, table_id: str) -> Maintained:
    """Return what is known of a table's maintenance: what is stored, and the commits that the log has since.

    Raises:
        TornLogError: a commit file is damaged.
    """
    stored = ops.states.read(table, Maintained)
    known = stored if stored and stored.table_id == table_id else Maintained(table_id=table_id)
    for commit in remaining_commits(ops.paths.table(table), known.upto if known.upto >= 0 else None):
        known = known.after(commit)
    return known


def keep_maintained(
    ops: OpsTables,
    table: str,
    *,
    planned_at: datetime | None = None,
    vacuumed_at: datetime | None = None,
    searched: int | None = None,
    rewritten: Rewritten | None = None,
) -> None:
    """Store what is known now, so that nobody reads the same commits again, even after Delta has deleted them.

    Args:
        ops: the ledger.
        table: a table that exists.
        planned_at: when this run begins an action of the plan.
        vacuumed_at: when this run has ended VACUUM: Delta logs it on local disk only.
        searched: the version with whose rows this run has compared the deleted keys.
        rewritten: the work of this run of OPTIMIZE.
    """
    with tolerate_state_errors(table):
        known = maintained(ops, table, identity(open_table(ops.paths.table(table), without_files=True)))
        times = {"planned_at": planned_at, "vacuumed_at": vacuumed_at}
        new: dict[str, Any] = {name: at for name, at in times.items() if at}
        if searched is not None:
            new["searched"] = searched
        if rewritten:
            new["rewritten"] = rewritten
        ops.states.change(table, (Maintained, lambda stored: completed(stored, known).model_copy(update=new)))


def _z_ordered(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns of ZORDER BY, from the parameters of an OPTIMIZE commit; other systems may write any value."""
    with suppress(ValueError, TypeError):
        return tuple(map(str, json.loads(parameters.get("zOrderBy") or "[]")))
    return ()

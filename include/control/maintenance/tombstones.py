"""The deleted keys that a silver table may forget: those of deletes that were merged longer ago than its spec says.

When a delete was merged is said by the ledger's clock, at the closing of its batch. The delete's own sequence says when
something happened at the source, which may be long before it was delivered (ADR 0019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import AnySpec, SilverSpec
from include.contracts.spec.values import duration
from include.control.ledger.ledger import Ledger
from include.control.log.stored_tables import is_table, open_table
from include.control.log.table_queries import identifiers, query
from include.control.planning.planner import stream_position
from include.paths import LakehousePaths


@dataclass(frozen=True)
class OldTombstones:
    """The tombstones of a table that are beyond their retention.

    Attributes:
        retain: the retention, as the spec states it; empty where they are kept for ever.
        keys: how many deleted keys; a truncate is none.
        upto: the last batch whose deletes are old enough, 0 where none is.
        unclosed: the table's last batch, while it is not closed: what it did is counted again from the tombstones, so
            none may go.
    """

    retain: str = ""
    keys: int = 0
    upto: int = 0
    unclosed: int | None = None

    @property
    def may_go(self) -> bool:
        """Whether there are any, and nobody needs them."""
        return self.keys > 0 and self.unclosed is None


def old_tombstones(spec: AnySpec, paths: LakehousePaths, ledger: Ledger, now: datetime) -> OldTombstones:
    """What the table may forget now; nothing is written, and no Spark is started.

    Raises:
        TornLogError: the table's log does not continue where it was last resolved.
    """
    retain = spec.maintenance.tombstones.retain if isinstance(spec, SilverSpec) else None
    if not isinstance(spec, SilverSpec) or retain is None:
        return OldTombstones()
    position = stream_position(spec, paths, ledger)
    last = position.last if position else None
    if last is None or not is_table(path := paths.tombstones(spec.table, last.intent.table_id)):
        return OldTombstones(retain)
    upto = ledger.closed_before(spec.table, last.intent.table_id, last.intent.stream, now - duration(retain))
    keys = _deleted_keys(path, spec.keys, upto) if upto else 0
    return OldTombstones(retain, keys, upto, None if ledger.closed(last) else last.batch_seq)


def _deleted_keys(path: LakePath, keys: Sequence[str], upto: int) -> int:
    """How many keys batches up to `upto` have buried; the tombstone of a truncate has no key."""
    has_a_key = " OR ".join(f"{identifiers([key])} IS NOT NULL" for key in keys)
    sql = f"SELECT count(*) AS keys FROM stored WHERE _batch_seq <= {upto} AND ({has_a_key})"
    return int(query(open_table(path), sql)[0]["keys"])

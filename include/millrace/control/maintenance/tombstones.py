"""Find the tombstones of a silver table that are past their retention.

Their age counts from the time at which the ledger closed the batch that merged the delete. The sequence of the delete
is the time of the event at the source, which may be long before its delivery (ADR 0019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.table_spec import AnySpec, SilverSpec
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import ONE_STREAM
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.log.table_queries import identifiers, query
from millrace.control.maintenance.old_files import LEAST_RETENTION
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.paths import LakehousePaths


@dataclass(frozen=True)
class OldTombstones:
    """The tombstones of a table that are past their retention.

    Attributes:
        retain: the retention of the spec; empty where tombstones are kept for ever.
        keys: number of deleted keys; a truncate does not count.
        upto: the last batch whose deletes are old enough; 0 for none.
        unclosed: the table's last batch if it is not closed yet. Closing counts its rows from the tombstones, so that
            none may be removed before.
    """

    retain: str = ""
    keys: int = 0
    upto: int = 0
    unclosed: int | None = None

    @property
    def may_go(self) -> bool:
        """Whether there are tombstones to remove and nothing needs them."""
        return self.keys > 0 and self.unclosed is None


def forgets_soon(spec: AnySpec) -> bool:
    """Whether a table forgets its deleted keys so soon that a person has to allow it."""
    retain = spec.maintenance.tombstones.retain if isinstance(spec, SilverSpec) else None
    return retain is not None and RETENTION.parse(retain) < LEAST_RETENTION


def old_tombstones(spec: AnySpec, paths: LakehousePaths, ledger: Ledger, now: datetime) -> OldTombstones:
    """Find the tombstones that may be removed now, without writing and without Spark.

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
    upto = ledger.history.closed_before(
        spec.table, last.intent.table_id, last.intent.stream, now - RETENTION.parse(retain)
    )
    keys = _count_keys(path, spec.keys, upto) if upto else 0
    return OldTombstones(retain, keys, upto, None if ledger.closed_rows(last) else last.batch_seq)


def tombstones_to_search(spec: AnySpec, ops: OpsTables) -> int:
    """Return the number of tombstones of a table, if those may be deleted whose keys exist again; else 0.

    The rows of these keys recognise late events too. None may be deleted while the last batch is not closed and
    certified: a restore, or a second count of that batch, would need the tombstones.

    Raises:
        TornLogError: the table's log does not continue where it was last resolved.
    """
    if not isinstance(spec, SilverSpec) or spec.builds_on_earlier or spec.snapshot:
        return 0
    position = stream_position(spec, ops.paths, ops.ledger)
    last, certified = position.last if position else None, ops.gates.certified(spec.table)
    if last is None or not ops.ledger.closed_rows(last) or certified is None or certified < last.version:
        return 0
    path = ops.paths.tombstones(spec.table, last.intent.table_id)
    return table_rows(path, latest_version(path)) if is_table(path) else 0


def _count_keys(path: LakePath, keys: Sequence[str], upto: int) -> int:
    """Count the keys that batches up to `upto` deleted; the tombstone of a truncate has no key.

    Those of a source that had a stream of its own are not counted: its batches had other numbers.
    """
    has_a_key = " OR ".join(f"{identifiers([key])} IS NOT NULL" for key in keys)
    sql = f"SELECT count(*) AS keys FROM stored WHERE _stream = '{ONE_STREAM}' AND _batch_seq <= {upto}"
    sql += f" AND ({has_a_key})"
    return int(query(open_table(path), sql)[0]["keys"])

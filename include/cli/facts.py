"""What is known of a table from its Delta log alone: version, rows, size. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from include.contracts.lake_path import LakePath
from include.contracts.row_status import PENDING
from include.control.gates.result import Override
from include.control.ledger.ledger import Streams
from include.control.ledger.measures import Measures, measured
from include.control.log.batch import Stream
from include.control.log.delta_log import latest_version
from include.control.quarantine.rows import count_by_status
from include.control.records import Records
from include.errors import MillraceError
from include.paths import LakehousePaths


@dataclass(frozen=True)
class TableFacts:
    """One table as it lies on disk; all None where it was never built.

    Attributes:
        table: the table.
        version: its newest version.
        certified_version: the version that readers may use.
        rows: rows of the newest version; None too where a file states no count.
        deleted: how many rows went with its last batch; None where that is not known.
        bytes: size of the files of the newest version.
        quarantined: rows that wait in its quarantine, neither replayed nor discarded.
        rescued: rows of the newest version with a value in `_rescued`, where its files state that.
        override: by whose word the certified version may be read though the rules refused it; None where they did not.
        damage: why the table cannot be read; empty for a sound one.
    """

    table: str
    version: int | None = None
    certified_version: int | None = None
    rows: int | None = None
    deleted: int | None = None
    bytes: int | None = None
    quarantined: int | None = None
    rescued: int | None = None
    override: Override | None = None
    damage: str = ""


def table_facts(table: str, root: LakePath) -> TableFacts:
    """Look at one table of the lakehouse under `root`; one that cannot be read says why."""
    return facts_of([table], root)[0]


def facts_of(tables: Iterable[str], root: LakePath) -> list[TableFacts]:
    """Look at several; one that cannot be read stops no other."""
    records = Records(LakehousePaths(root))
    return [_facts_or_damage(table, records) for table in tables]


def _facts_or_damage(table: str, records: Records) -> TableFacts:
    try:
        return _facts(table, records)
    except MillraceError as error:
        return TableFacts(table, damage=str(error))


def _facts(table: str, records: Records) -> TableFacts:
    path = records.paths.table(table)
    kept = records.states.read(table, Measures)
    measures = kept if kept and kept.is_newest(path) else measured(path)
    if measures is None:
        return TableFacts(table)
    standing = records.gates.standing(table)
    overridden = standing.override_in_force if standing else None
    streams = records.states.read(table, Streams)
    last = streams.ends.get(Stream(table).name) if streams else None
    return TableFacts(
        table=table,
        version=measures.version,
        certified_version=standing.certified if standing else None,
        rows=measures.rows,
        deleted=last.rows.deleted if last and last.rows else None,
        bytes=measures.size,
        quarantined=_waiting(table, records.paths),
        rescued=measures.rescued,
        override=overridden.override if overridden else None,
    )


def _waiting(table: str, paths: LakehousePaths) -> int:
    if latest_version(paths.quarantine(table)) < 0:
        return 0
    counted = count_by_status(table, paths)
    return sum(counted[status] for status in PENDING)

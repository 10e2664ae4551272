"""The facts of a table that its Delta log and the ledger state: version, rows, size. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millrace.contracts.lake_path import LakePath
from millrace.contracts.row_status import PENDING
from millrace.control.gates.result import Override
from millrace.control.ledger.states.measures import Measures, measure
from millrace.control.ledger.states.streams import Streams
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.rows import count_by_status
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import MillraceError
from millrace.paths import LakehousePaths


@dataclass(frozen=True)
class TableFacts:
    """The facts of one table; all None if it was never built.

    Attributes:
        table: the table.
        version: its newest version.
        certified_version: the version that readers may use.
        rows: rows of the newest version; None if a file states no count.
        deleted: rows that its last batch deleted; None if unknown.
        bytes: size of the files of the newest version.
        quarantined: rows that wait in its quarantine, neither replayed nor discarded.
        rescued: rows of the newest version with a value in `_rescued`; None if its files do not state that.
        override: the override that lets readers use the certified version although the rules refused it, if any.
        damage: why the table cannot be read; empty for a sound table.
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
    """Return the facts of one table of the lakehouse under `root`."""
    return read_facts([table], root)[0]


def read_facts(tables: Iterable[str], root: LakePath) -> list[TableFacts]:
    """Return the facts of several tables; a table that cannot be read has only `damage`."""
    ops, facts = OpsTables(LakehousePaths(root)), list[TableFacts]()
    for table in tables:
        try:
            facts.append(_facts(table, ops))
        except MillraceError as error:
            facts.append(TableFacts(table, damage=str(error)))
    return facts


def _facts(table: str, ops: OpsTables) -> TableFacts:
    path = ops.paths.table(table)
    recorded = ops.states.read(table, Measures)
    measures = recorded if recorded and recorded.is_newest(path) else measure(path)
    if measures is None:
        return TableFacts(table)
    verdicts = ops.gates.verdicts(table)
    streams = ops.states.read(table, Streams)
    last = streams.newest if streams else None
    counts = count_by_status(StoredRows(table, ops.paths, ops.quarantine))
    return TableFacts(
        table=table,
        version=measures.version,
        certified_version=verdicts.certified if verdicts else None,
        rows=measures.rows,
        deleted=last.rows.deleted if last and last.rows else None,
        bytes=measures.size,
        quarantined=sum(counts[status] for status in PENDING),
        rescued=measures.rescued,
        override=verdicts.certified_by_hand if verdicts else None,
    )

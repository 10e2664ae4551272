"""Read all tables of a lakehouse, for a process that shows them again and again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from threading import Lock

from include.catalog import Catalog
from include.control.ledger.new_columns import OPEN
from include.control.ledger.states.all_states import AllStates
from include.control.ledger.states.table_state import TableState
from include.control.ops_tables import OpsTables
from include.control.storage.read_cache import cached_reads
from include.overview.known_catalog import KnownCatalog
from include.overview.table_overview import Questions, TableOverview, overview_of
from include.paths import LakehousePaths

_NO_STATE = TableState({})


class LakehouseReader:
    """Reads specs, states and open questions; it keeps what it has read, and reads only what changed since.

    Several threads may use it.
    """

    def __init__(self, paths: LakehousePaths, specs: Path) -> None:
        self._catalog = KnownCatalog(specs)
        self._states = AllStates(paths)
        self._ops = OpsTables(paths)
        self._lock = Lock()

    def read(self, now: datetime) -> list[TableOverview]:
        """Return every table that has a spec, in build order.

        Raises:
            SpecError: there is no folder of specs.
            MillraceError: the storage cannot be read.
        """
        with self._lock, cached_reads():
            catalog, states, questions = self._catalog.read(), self._states.read(), self._questions()
        return [
            overview_of(
                catalog.invalid.get(table) or catalog.specs[table],
                states.get(table, _NO_STATE),
                questions.get(table, Questions()),
                now,
            )
            for table in _tables(catalog)
        ]

    def _questions(self) -> dict[str, Questions]:
        deletes, columns = self._ops.deletes, self._ops.new_columns
        return {
            table: Questions(deletes.pending_deletes(table), columns.of(table, *OPEN))
            for table in deletes.tables() | columns.tables()
        }


def _tables(catalog: Catalog) -> list[str]:
    """Return every table, also one whose file is in no table's place."""
    return [*catalog.tables, *(table for table in catalog.invalid if table not in catalog.tables)]

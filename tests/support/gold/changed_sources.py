"""Silver tables as no merge writes them: by delta-rs, changed in any way that Delta has, and certified as they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from millrace.catalog import load_catalog
from millrace.control.log.delta_log import latest_version
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import arrow_type
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import judge

FEED = "delta.enableChangeDataFeed"


class ChangedSources:
    """Tables of a lakehouse with their specs, each with a change feed; conditions are those of DataFusion.

    The first column of a table is its key, the second one its sequence.
    """

    def __init__(self, lakehouse: Lakehouse, columns: Mapping[str, Mapping[str, str]]) -> None:
        self.lakehouse = lakehouse
        self.columns = columns
        for table, typed in columns.items():
            source = table.replace("silver", "bronze")
            key, sequence, *_ = typed
            stated = {"columns": {name: {"type": kind} for name, kind in typed.items()}}
            silver = silver_document(table, source=source, keys=[key], sequence_by=[sequence], **stated)
            lakehouse.specs(bronze_document(source, **stated), silver)
            DeltaTable.create(self.path(table), self._schema(table), configuration={FEED: "true"})

    def path(self, table: str) -> str:
        return str(self.lakehouse.paths.table(table))

    def insert(self, table: str, *rows: tuple[Any, ...]) -> None:
        write_deltalake(self.path(table), self._rows(table, rows), mode="append", schema_mode="merge")

    def update(self, table: str, where: str, **values: Any) -> None:
        literals = {name: literal(value) for name, value in values.items()}
        DeltaTable(self.path(table)).update(literals, predicate=where)

    def delete(self, table: str, where: str | None = None) -> None:
        DeltaTable(self.path(table)).delete(where)

    def overwrite_without(self, table: str, **key: Any) -> None:
        """Write all rows anew but those with this value of a column, of which null is one."""
        ((name, value),) = key.items()
        rows = DeltaTable(self.path(table)).to_pyarrow_table()
        kept = [row for row in rows.to_pylist() if row[name] != value]
        write_deltalake(self.path(table), pa.Table.from_pylist(kept, rows.schema), mode="overwrite")

    def restore_version_before(self, table: str) -> None:
        delta = DeltaTable(self.path(table))
        if delta.version() > 1:  # else there is no version with rows before
            delta.restore(delta.version() - 1)

    def optimize(self, table: str) -> None:
        DeltaTable(self.path(table)).optimize.compact()

    def add_column(self, table: str, name: str) -> None:
        DeltaTable(self.path(table)).alter.add_columns([Field(name, PrimitiveType("string"))])

    def set_feed(self, table: str, is_on: bool) -> None:
        DeltaTable(self.path(table)).alter.set_table_properties({FEED: str(is_on).lower()})

    def certify(self) -> None:
        """Certify the newest version of each table."""
        catalog, root = load_catalog(self.lakehouse.folder / "tables"), self.lakehouse.paths.root
        for table in self.columns:
            judge(root, catalog.spec(table), latest_version(self.lakehouse.paths.table(table)))

    def _schema(self, table: str) -> pa.Schema:
        return pa.schema([(name, arrow_type(kind)) for name, kind in self.columns[table].items()])

    def _rows(self, table: str, rows: tuple[tuple[Any, ...], ...]) -> pa.Table:
        named = [dict(zip(self.columns[table], row, strict=True)) for row in rows]
        return pa.Table.from_pylist(named, self._schema(table))


def equals(name: str, value: Any) -> str:
    """Return the condition that a column has a value, of which null is one."""
    return f"{name} IS NULL" if value is None else f"{name} = {literal(value)}"


def literal(value: Any) -> str:
    """Return a value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%dT%H:%M:%SZ}'"
    return f"DATE '{value}'" if isinstance(value, date) else repr(value)

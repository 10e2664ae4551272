"""Check that the other tables and columns of an expectation exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.contracts.spec.table_spec import SPEC_OF_LAYER
from include.contracts.spec.tables_in_braces import OWN_TABLE, tables_in_braces
from include.specs.checks.columns import stored_columns_in, unknown_column
from include.specs.document import Document, list_at, mapping_at, stated_rules, stated_sources
from include.specs.problem import Defect, KeyPath, did_you_mean

_TIMES = ("timestamp", "date")


def check_compared(document: Document) -> Iterator[Defect]:
    """Check that an age has a time column, that a source is read by the table, and that column lists match."""
    for path, name, arguments in stated_rules(document):
        if name == "expect_table_to_be_fresh":
            column, columns = arguments.get("column"), mapping_at(document, "columns")
            declaration = columns.get(str(column))
            if isinstance(declaration, dict) and (kind := declaration.get("type", "string")) not in _TIMES:
                times = [name for name in columns if mapping_at(columns, name).get("type") in _TIMES]
                fix = f"name one of {', '.join(times)}" if times else "no column of this table is a timestamp or a date"
                message = f"only a timestamp or a date has an age, and this column is {kind}"
                yield Defect((*path, "column"), message, column, fix)
        if name == "expect_table_to_reconcile_with_source":
            source, sources = arguments.get("source"), [table for _, table in stated_sources(document)]
            if isinstance(source, str) and source not in sources:
                fix = (
                    did_you_mean(source, sources) if sources else "leave the rule out: this table reads no other table"
                )
                yield Defect((*path, "source"), "the table does not read this table", source, fix)
        if name == "expect_compound_columns_to_exist_in_other_table":
            own, other = arguments.get("column_list"), arguments.get("other_column_list")
            if isinstance(own, list) and isinstance(other, list) and len(own) != len(other):
                message = f"{len(own)} columns are compared with {len(other)}"
                fix = f"name {len(own)}, in the order of column_list"
                yield Defect((*path, "other_column_list"), message, other, fix)


def check_other_tables(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Find other tables that no spec creates, and columns that they lack; `documents` has all specs by table."""
    for path, _, arguments in stated_rules(document):
        query = arguments.get("query")
        for table in tables_in_braces(query) if isinstance(query, str) else ():
            if table != OWN_TABLE and table not in documents:
                fix = did_you_mean(table, documents)
                yield Defect((*path, "query"), f"no spec creates the table {table}", query, fix)
        other = arguments.get("other_table")
        if not isinstance(other, str) or other.partition(".")[0] not in SPEC_OF_LAYER:
            continue
        if other not in documents:
            yield Defect((*path, "other_table"), "no spec creates this table", other, did_you_mean(other, documents))
            continue
        columns = stored_columns_in(documents[other])
        names: list[tuple[KeyPath, Any]] = [((*path, "other_column"), arguments.get("other_column"))]
        for index, column in enumerate(list_at(arguments, "other_column_list")):
            names.append(((*path, "other_column_list", index), column))
        for place, column in names:
            if columns and isinstance(column, str) and not column.startswith("_") and column not in columns:
                yield unknown_column(place, column, columns, other)

"""Check that the other tables and columns of an expectation exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.expectation import OWN_TABLE, tables_in_braces
from millrace.contracts.spec.table_spec import SPEC_OF_LAYER
from millrace.specs.checks.columns import stored_columns_in, type_of_column, unknown_column
from millrace.specs.document import Document, list_at, mapping_at, stated_references, stated_rules, stated_sources
from millrace.specs.problem import Defect, KeyPath, did_you_mean


def check_compared(document: Document) -> Iterator[Defect]:
    """Check that an age has a time column, that a source is read by the table, and that column lists match."""
    for path, name, arguments in stated_rules(document):
        if name == "expect_table_to_be_fresh":
            column, columns = arguments.get("column"), mapping_at(document, "columns")
            declaration = columns.get(str(column))
            if isinstance(declaration, dict) and (kind := declaration.get("type", "string")) not in TIMES:
                times = [name for name in columns if mapping_at(columns, name).get("type") in TIMES]
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


def check_references(document: Document) -> Iterator[Defect]:
    """Check that only silver rows wait for another table, for a silver table, and not in a full snapshot."""
    waiting = dict(stated_references(document))
    layer = str(document.get("table")).partition(".")[0]
    for path, arguments in waiting.items():
        other, action = arguments.get("other_table"), (*path[:2], "action")
        if layer == "bronze":
            message = "a bronze row does not wait for another table: bronze keeps what it receives, as it is"
            yield Defect(action, message, "quarantine", "state the rule on the silver table")
        if layer == "silver" and document.get("snapshot"):
            message = "a row of a full snapshot does not wait: the next snapshot delivers it again"
            yield Defect(action, message, "quarantine", "use `action: warn` or `fail`")
        if isinstance(other, str) and not other.startswith("silver."):
            message = "rows wait only for a silver table: bronze keeps deleted rows too, and gold is built after silver"
            yield Defect((*path, "other_table"), message, other, "name a silver table, or use `action: warn` or `fail`")
    for path, _, arguments in stated_rules(document):
        if "wait_at_most" in arguments and path not in waiting:
            fix = "leave it out, or use `action: quarantine`"
            message = "only a row in quarantine waits"
            yield Defect((*path, "wait_at_most"), message, arguments["wait_at_most"], fix)


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
    for path, arguments in stated_references(document):
        other = arguments.get("other_table")
        if isinstance(other, str) and other in documents:
            yield from _check_types(path, arguments, document, documents[other])


def _check_types(path: KeyPath, arguments: Mapping[str, Any], document: Document, other: Document) -> Iterator[Defect]:
    """Check that the columns of a reference have the types of the columns that they refer to."""
    pairs = [("column", arguments.get("column"), arguments.get("other_column"))]
    lists = list_at(arguments, "column_list"), list_at(arguments, "other_column_list")
    pairs += [("column_list", *names) for names in zip(*lists, strict=False)]
    for key, own, theirs in pairs:
        kinds = [type_of_column(of_table, name) for of_table, name in ((document, own), (other, theirs))]
        if None not in kinds and kinds[0] != kinds[1]:
            message = f"{own} is {kinds[0]}, and {arguments['other_table']}.{theirs} is {kinds[1]}"
            fix = f"give both the same type, such as `type: {kinds[1]}` for {own}"
            yield Defect((*path, key), message, arguments[key], fix)

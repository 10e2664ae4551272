"""Check that the other tables and columns of an expectation exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.contracts.spec.table_spec import SPEC_OF_LAYER
from include.specs.checks.columns import Document, stored_columns_in, unknown_column
from include.specs.problem import Defect, KeyPath, did_you_mean

_TIMES = ("timestamp", "date")


def check_compared(document: Document) -> Iterator[Defect]:
    """Check within one document: an age needs a column of moments, and a source must be a source of the table."""
    for path, name, given in stated_rules(document):
        if name == "expect_table_to_be_fresh":
            yield from _check_moment((*path, "column"), given.get("column"), document)
        if name == "expect_table_to_reconcile_with_source":
            yield from _check_source((*path, "source"), given.get("source"), _sources(document))
        if name == "expect_compound_columns_to_exist_in_other_table":
            yield from _check_as_many(path, given)


def check_other_tables(document: Document, documents: Mapping[str, Document]) -> Iterator[Defect]:
    """Find other tables that no spec creates, and columns that they do not have.

    Args:
        document: the document to check.
        documents: table -> document, of all specs.
    """
    for path, _, given in stated_rules(document):
        other = given.get("other_table")
        if not isinstance(other, str) or other.partition(".")[0] not in SPEC_OF_LAYER:
            continue
        if other not in documents:
            yield Defect((*path, "other_table"), "no spec creates this table", other, did_you_mean(other, documents))
            continue
        columns = stored_columns_in(documents[other])
        for place, column in _other_columns(path, given):
            if columns and isinstance(column, str) and not column.startswith("_") and column not in columns:
                yield unknown_column(place, column, columns, other)


def stated_rules(document: Document) -> Iterator[tuple[KeyPath, str, Mapping[str, Any]]]:
    """Yield each expectation of a document: its key path, its name and its arguments."""
    rules = document.get("expectations")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        for name, given in rule.items() if isinstance(rule, dict) else ():
            if str(name).startswith("expect_") and isinstance(given, dict):
                yield ("expectations", index, name), name, given


def _other_columns(path: KeyPath, given: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    if "other_column" in given:
        yield (*path, "other_column"), given["other_column"]
    listed = given.get("other_column_list")
    for index, column in enumerate(listed if isinstance(listed, list) else ()):
        yield (*path, "other_column_list", index), column


def _check_moment(path: KeyPath, column: object, document: Document) -> Iterator[Defect]:
    columns = document.get("columns")
    declaration = columns.get(column) if isinstance(columns, dict) else None
    if isinstance(declaration, dict) and (kind := declaration.get("type", "string")) not in _TIMES:
        times = [
            name
            for name, declared in (columns or {}).items()
            if isinstance(declared, dict) and declared.get("type") in _TIMES
        ]
        fix = f"name one of {', '.join(times)}" if times else "no column of this table is a timestamp or a date"
        yield Defect(path, f"only a timestamp or a date has an age, and this column is {kind}", column, fix)


def _check_source(path: KeyPath, source: object, sources: list[str]) -> Iterator[Defect]:
    if isinstance(source, str) and source not in sources:
        fix = did_you_mean(source, sources) if sources else "leave the rule out: this table reads no other table"
        yield Defect(path, "the table does not read this table", source, fix)


def _sources(document: Document) -> list[str]:
    sources = document.get("sources")
    mappings = [source for source in sources.values() if isinstance(source, dict)] if isinstance(sources, dict) else []
    tables = (document.get("source"), *(source.get("table") for source in mappings))
    return [table for table in tables if isinstance(table, str)]


def _check_as_many(path: KeyPath, given: Mapping[str, Any]) -> Iterator[Defect]:
    own, other = given.get("column_list"), given.get("other_column_list")
    if isinstance(own, list) and isinstance(other, list) and len(own) != len(other):
        fix = f"name {len(own)}, in the order of column_list"
        yield Defect((*path, "other_column_list"), f"{len(own)} columns are compared with {len(other)}", other, fix)

"""Whether the tables and columns that an expectation compares its own table with are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from include.contracts.spec.table_spec import SPEC_OF_LAYER
from include.specs.checks.columns import Document, stored_columns_of, unknown_column
from include.specs.problem import Finding, KeyPath, did_you_mean

_TIMES = ("timestamp", "date")


def check_compared(document: Document) -> Iterator[Finding]:
    """What must hold within one document: an age is that of a moment, and a source is one of the table's own."""
    for path, name, given in stated_rules(document):
        if name == "expect_table_to_be_fresh":
            yield from _check_moment((*path, "column"), given.get("column"), document)
        if name == "expect_table_to_reconcile_with_source":
            yield from _check_source((*path, "source"), given.get("source"), _sources(document))
        if name == "expect_compound_columns_to_exist_in_other_table":
            yield from _check_as_many(path, given)


def check_other_tables(document: Document, documents: Mapping[str, Document]) -> Iterator[Finding]:
    """Other tables that no spec creates, and columns that they do not have.

    Args:
        document: the document to check.
        documents: table -> document, of all specs.
    """
    for path, _, given in stated_rules(document):
        other = given.get("other_table")
        if not isinstance(other, str) or other.partition(".")[0] not in SPEC_OF_LAYER:
            continue
        if other not in documents:
            yield Finding((*path, "other_table"), "no spec creates this table", other, did_you_mean(other, documents))
            continue
        columns = stored_columns_of(documents[other])
        for place, column in _other_columns(path, given):
            if columns and isinstance(column, str) and not column.startswith("_") and column not in columns:
                yield unknown_column(place, column, columns, other)


def stated_rules(document: Document) -> Iterator[tuple[KeyPath, str, Mapping[str, Any]]]:
    """Where each expectation of a document is stated, its name, and its arguments."""
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


def _check_moment(path: KeyPath, column: object, document: Document) -> Iterator[Finding]:
    columns = document.get("columns")
    stated = columns.get(column) if isinstance(columns, dict) else None
    if isinstance(stated, dict) and (kind := stated.get("type", "string")) not in _TIMES:
        times = [name for name, one in (columns or {}).items() if isinstance(one, dict) and one.get("type") in _TIMES]
        fix = f"name one of {', '.join(times)}" if times else "no column of this table is a timestamp or a date"
        yield Finding(path, f"an age is that of a timestamp or a date, and this column is {kind}", column, fix)


def _check_source(path: KeyPath, source: object, sources: list[str]) -> Iterator[Finding]:
    if isinstance(source, str) and source not in sources:
        fix = did_you_mean(source, sources) if sources else "leave the rule out: this table is loaded from no other"
        yield Finding(path, "the table does not read this one", source, fix)


def _sources(document: Document) -> list[str]:
    source, sources = document.get("source"), document.get("sources")
    found = [one.get("table") for one in sources.values() if isinstance(one, dict)] if isinstance(sources, dict) else []
    return [one for one in (source, *found) if isinstance(one, str)]


def _check_as_many(path: KeyPath, given: Mapping[str, Any]) -> Iterator[Finding]:
    own, other = given.get("column_list"), given.get("other_column_list")
    if isinstance(own, list) and isinstance(other, list) and len(own) != len(other):
        fix = f"name {len(own)}, in the order of column_list"
        yield Finding((*path, "other_column_list"), f"{len(own)} columns are compared with {len(other)}", other, fix)

"""Check `concurrent_by`: in bronze a file has one interval, in silver a key one source, and no rule judges one run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millrace.contracts.spec.column_types import TYPES, WHOLE_NUMBERS
from millrace.specs.checks.columns import declared_columns, type_of_column, unknown_column
from millrace.specs.checks.landing import BY_INTERVAL
from millrace.specs.document import Document, list_at, mapping_at, stated_references, stated_rules
from millrace.specs.problem import Defect, KeyPath

_WITHOUT = "leave concurrent_by out"


def check_concurrency(document: Document) -> Iterator[Defect]:
    """Check that runs that write a table at the same time never read or write the same row."""
    layer = str(document.get("table")).partition(".")[0]
    if layer == "silver":
        yield from _check_partitions(document)
    if not (stated := document.get("concurrent_by")):
        return
    if layer == "bronze":
        yield from _check_folder(document, stated)
    if layer == "silver":
        yield from _check_column(document, stated)
        yield from _check_settings(document)
    yield from _check_rules(document)


def _check_folder(document: Document, stated: str) -> Iterator[Defect]:
    """Check that each landing file is loaded by the runs of one interval."""
    source = mapping_at(document, "source")
    path = source.get("path", BY_INTERVAL)
    fix = ""
    if "kafka" in source:
        fix = "leave it out: the messages of a topic have no interval, and one batch reads all partitions"
    elif not isinstance(path, str):
        return
    elif "interval_start" not in path:
        fix = f"give each interval its own folder: path: {BY_INTERVAL}"
    elif "interval_end" in path:
        fix = "name the folder by interval_start alone: source.path also uses interval_end"
    if fix:
        yield Defect(("concurrent_by",), "a file could be loaded by the runs of several intervals", stated, fix)


def _check_column(document: Document, column: str) -> Iterator[Defect]:
    """Check that a silver table has several sources, and that a key, like a folder, belongs to one of them."""
    path, columns = ("concurrent_by",), declared_columns(document)
    if document.get("source"):
        fix = f"write sources, each with its partitions; or {_WITHOUT}"
        yield Defect(path, "each source is merged on its own, and this table has only one", column, fix)
    if columns and column not in columns:
        yield unknown_column(path, column, columns)
        return
    # A null stands for a name that another check has refused.
    lists = {key: list_at(document, key) for key in ("keys", "partitioned_by")}
    if missing := [key for key, names in lists.items() if column not in names and None not in names]:
        message = "its value must say to which source a key belongs, and which files a merge can touch"
        yield Defect(path, message, column, f"add it to {' and '.join(missing)}")
    kind = type_of_column(document, column)
    if kind not in (None, "string", *WHOLE_NUMBERS):
        message = f"only texts and whole numbers can be shared out, and this column is {kind}"
        yield Defect(path, message, column, f"name a column of another type: string, {', '.join(WHOLE_NUMBERS)}")


def _check_settings(document: Document) -> Iterator[Defect]:
    """Refuse what concerns the rows of several sources, or compares their batches."""
    if priority := document.get("source_priority"):
        message = "with concurrent_by no two sources have the same key, so that none can win"
        yield Defect(("source_priority",), message, priority, f"leave it out, or {_WITHOUT}")
    if document.get("on_refusal") == "restore":
        message = "with concurrent_by the certified version may lack batches of a run that is still at work"
        yield Defect(("on_refusal",), message, "restore", f"write keep, or {_WITHOUT}")
    if retain := mapping_at(mapping_at(document, "maintenance"), "tombstones").get("retain"):
        message = "with concurrent_by each source numbers its batches, and tombstones are forgotten by such a number"
        fix = f"leave it out: deleted keys are then kept for ever; or {_WITHOUT}"
        yield Defect(("maintenance", "tombstones", "retain"), message, retain, fix)
    for at, _ in stated_references(document):
        message = "rows that wait are tried again by the batches of one stream, and concurrent_by makes several"
        yield Defect((*at[:2], "action"), message, "quarantine", f"use `action: warn` or `fail`, or {_WITHOUT}")


def _check_partitions(document: Document) -> Iterator[Defect]:
    """Check that each source of a silver table states values of the column, and no value is stated twice."""
    column, found = document.get("concurrent_by"), dict[object, str]()
    for index, source in enumerate(list_at(document, "sources")):
        path, values = ("sources", index, "partitions"), list_at(source, "partitions")
        if values and not column:
            fix = "write concurrent_by: <column>, or leave it out"
            yield Defect(path, "only a table with concurrent_by shares out partitions", values, fix)
        elif column and isinstance(source, dict) and source.get("partitions", []) == []:
            message, fix = f"the source delivers no {column}", f"list its values of {column}: partitions: [...]"
            yield Defect(path if "partitions" in source else path[:-1], message, source.get("table"), fix)
        for place, value in enumerate(values if column else []):
            yield from _check_value((*path, place), value, type_of_column(document, column))
            if value in found and value is not None:
                message = f"{found[value]} delivers this {column} already"
                yield Defect((*path, place), message, value, "leave it out in one of the two places")
            found.setdefault(value, str(source.get("table")))


def _check_value(path: KeyPath, value: Any, kind: str | None) -> Iterator[Defect]:
    """Check that a value is one that a column of this type can have."""
    if value == "":
        message = "Delta stores an empty text as null, and a key has a value"
        yield Defect(path, message, value, "leave it out")
    elif kind == "string" and isinstance(value, int):
        yield Defect(path, "this is compared with texts", value, f'write it in quotes: "{value}"')
    elif kind in WHOLE_NUMBERS and isinstance(value, str):
        yield Defect(path, "this is compared with whole numbers", value, "write a whole number, without quotes")
    elif kind in WHOLE_NUMBERS and isinstance(value, int) and not -(end := 2 ** (TYPES[kind].bits - 1)) <= value < end:
        yield Defect(path, f"no {kind} has this value", value, "correct it, or give the column the type bigint")


def _check_rules(document: Document) -> Iterator[Defect]:
    """Refuse the rules that judge one run, or what it has read."""
    for at, name, arguments in stated_rules(document):
        if name == "expect_table_row_count_to_be_near_median" and arguments.get("rows") == "applied":
            message = "it judges one run, and with concurrent_by one check covers several"
            yield Defect((*at, "rows"), message, "applied", f"write rows: in_table, or {_WITHOUT}")
        if name == "expect_table_to_be_fresh" and arguments.get("as_of") != "commit":
            message = "it compares with the interval of one run, and with concurrent_by one check covers several"
            yield Defect(at, message, arguments.get("as_of"), f"write as_of: commit, or {_WITHOUT}")
        if name == "expect_table_to_reconcile_with_source":
            message = "it compares with what one batch has read, and with concurrent_by that is one of the sources"
            yield Defect(at, message, arguments.get("source"), f"leave the rule out, or {_WITHOUT}")

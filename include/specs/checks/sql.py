"""Whether Spark will understand the SQL of the specs: its functions, its columns, and where it aggregates.

For `lakehouse check` alone: reading SQL takes half a second of start-up, and what is not found here Spark finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from include.catalog import Catalog
from include.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from include.specs.files import read_spec_file
from include.specs.problem import Finding, KeyPath, SpecProblem, did_you_mean
from include.sql.expression import SqlExpression
from include.sql.spark_functions import FUNCTIONS

_OF_MESSAGES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")


@dataclass(frozen=True)
class Stated:
    """One expression of a spec.

    Attributes:
        path: its key.
        text: the SQL.
        columns: the columns that it may name without an alias; None where a table may have others too.
        over_rows: whether it is an aggregate over many rows, rather than a value of one.
        aliases: what a name may begin with before its column.
        grouped: SQL that has one value for all rows of a group.
    """

    path: KeyPath
    text: str
    columns: tuple[str, ...] | None
    over_rows: bool = False
    aliases: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()


def sql_problems(catalog: Catalog) -> list[SpecProblem]:
    """Everything in the SQL of the sound specs that Spark would refuse, as far as that can be told without it."""
    problems: list[SpecProblem] = []
    for spec in catalog.specs.values():
        findings = [found for stated in _expressions(spec, catalog.specs) for found in _findings(stated)]
        file = read_spec_file(catalog.files[spec.table]) if findings else None
        problems += [file.problem(one.path, one.message, one.value, one.fix) for one in findings if file]
    return problems


def _findings(stated: Stated) -> Iterator[Finding]:
    sql = SqlExpression(stated.text)
    if sql.unreadable:
        yield Finding(stated.path, f"not an expression: {sql.unreadable}", stated.text)
        return
    for name in sql.unknown_functions:
        near = did_you_mean(name.lower(), sorted(FUNCTIONS))
        fix = near if near.startswith("did you mean") else "Spark has no function of this name"
        yield Finding(stated.path, f"unknown function {name!r}", stated.text, fix)
    yield from _unknown_columns(stated, sql)
    for name in () if stated.over_rows else sql.aggregates:
        message = f"the aggregate {name!r} has no place here: this is worked out for each row by itself"
        yield Finding(stated.path, message, stated.text, "aggregate in the measures of a gold table")
    for name in sql.nested_aggregates if stated.over_rows else ():
        yield Finding(stated.path, f"the aggregate {name!r} stands within another one", stated.text)
    if stated.over_rows and not sql.may_aggregate and (single := _of_single_rows(stated, sql)):
        fix = f"write max({single}), or another aggregate"
        yield Finding(stated.path, f"{single} is a value of each row, and this is one of all", stated.text, fix)


def _unknown_columns(stated: Stated, sql: SqlExpression) -> Iterator[Finding]:
    known = {name.lower() for name in (*(stated.columns or ()), *stated.aliases)}
    for name in sql.columns if stated.columns is not None else ():
        if name[0].lower() not in known and not name[0].startswith("_"):
            fix = did_you_mean(name[0], stated.columns or ())
            yield Finding(stated.path, f"there is no column {'.'.join(name)!r} here", stated.text, fix)


def _of_single_rows(stated: Stated, sql: SqlExpression) -> str:
    """A column of which each row of a group may have a value of its own; empty if there is none."""
    grouped = {name[-1].lower() for text in stated.grouped for name in SqlExpression(text).columns}
    return next((".".join(name) for name in sql.columns if name[-1].lower() not in grouped), "")


def _expressions(spec: AnySpec, specs: Mapping[str, AnySpec]) -> Iterator[Stated]:
    if isinstance(spec, BronzeSpec) and spec.reads_kafka:
        for name, text in spec.kafka_source.transforms.items():
            yield Stated(("source", "transforms", name), text, _OF_MESSAGES)
    elif isinstance(spec, SilverSpec):
        yield from _of_silver(spec, specs)
    elif isinstance(spec, GoldSpec):
        yield from _of_gold(spec, specs)
    yield from _of_rules(spec, specs)


def _of_silver(spec: SilverSpec, specs: Mapping[str, AnySpec]) -> Iterator[Stated]:
    # An expression may also name a column that is worked out above it.
    received = columns_of(specs.get(spec.source))
    known = None if received is None else (*received, *spec.columns)
    for name, column in spec.columns.items():
        if column.expression is not None:
            yield Stated(("columns", name, "from"), column.expression, known)
    for key in ("apply_as_deletes", "apply_as_truncates"):
        if (text := getattr(spec, key)) is not None:
            yield Stated((key,), text, known)


def _of_gold(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[Stated]:
    of_sources = {alias: columns_of(specs.get(source.table)) for alias, source in spec.sources.items()}
    joined = _all(of_sources.values())
    of_group = None if joined is None else (*joined, *spec.group_by, *spec.measures)
    aliases = tuple(spec.sources)
    for alias, source in spec.sources.items():
        if source.where is not None:
            yield Stated(("sources", alias, "where"), source.where, of_sources[alias])
        if source.on is not None:
            yield Stated(("sources", alias, "on"), source.on, joined, aliases=aliases)
    for alias, text in spec.refresh_from.items():
        yield Stated(("refresh_from", alias), text, of_sources.get(alias))
    for name, text in spec.group_by.items():
        yield Stated(("group_by", name), text, joined, aliases=aliases)
    grouped = (*spec.group_by.values(), *spec.group_by, *spec.measures)
    for name, text in spec.measures.items():
        yield Stated(("measures", name), text, of_group, True, aliases, grouped)


def _of_rules(spec: AnySpec, specs: Mapping[str, AnySpec]) -> Iterator[Stated]:
    for index, rule in enumerate(spec.expectations):
        of_table = {"measure": spec.table, "source_measure": str(rule.arguments.get("source"))}
        for key, table in of_table.items():
            if isinstance(text := rule.arguments.get(key), str):
                yield Stated(("expectations", index, rule.name, key), text, columns_of(specs.get(table)), True)


def columns_of(spec: AnySpec | None) -> tuple[str, ...] | None:
    """The columns of a table; None where the spec does not say them all, or is wrong itself."""
    match spec:
        case BronzeSpec():
            return None if spec.on_drift == "evolve" else tuple(spec.columns)
        case SilverSpec():
            return spec.stored_columns
        case GoldSpec():
            return (*spec.group_by, *spec.measures)
        case None:
            return None


def _all(columns: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    listed = list(columns)
    return None if None in listed else tuple(name for names in listed for name in names or ())

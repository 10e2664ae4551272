"""The columns of a table as its spec describes them, each with the rules that check it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverQuerySpec, SilverSpec


@dataclass(frozen=True)
class DescribedColumn:
    """A column of a table.

    Attributes:
        name: its name.
        type: its Spark SQL type; empty where it follows from an expression.
        description: the meaning of its values, with their unit.
        is_key: whether it identifies a row, alone or with other columns.
        expression: how it is computed; empty for a column as the source has it.
        rules: the rules that check it.
    """

    name: str
    type: str
    description: str
    is_key: bool
    expression: str
    rules: Sequence[Expectation]


def column_names(spec: AnySpec) -> tuple[str, ...]:
    """Return the columns that the spec declares, also those of silver that the table does not store."""
    return (*spec.group_by, *spec.measures, *spec.query_columns) if isinstance(spec, GoldSpec) else tuple(spec.columns)


def row_key(spec: AnySpec) -> tuple[str, ...]:
    """Return the columns that identify a row of the table; none of bronze, and of gold with a query."""
    if isinstance(spec, SilverQuerySpec):
        return spec.keys
    if isinstance(spec, SilverSpec):
        return (*spec.keys, *spec.period_columns[:1])
    return tuple(spec.group_by) if isinstance(spec, GoldSpec) else ()


def described_columns(spec: AnySpec) -> list[DescribedColumn]:
    """Return the columns that the table stores, in their order."""
    if isinstance(spec, GoldSpec):
        computed = {**spec.group_by, **spec.measures, **dict.fromkeys(spec.query_columns, "")}
        keys = spec.keys if isinstance(spec, SilverQuerySpec) else tuple(spec.group_by)
        return [
            DescribedColumn(name, "", "", name in keys, sql, rules_of(spec, name)) for name, sql in computed.items()
        ]
    stored = spec.stored_columns if isinstance(spec, SilverSpec) else spec.columns
    keys = spec.keys if isinstance(spec, SilverSpec) else ()
    return [
        DescribedColumn(
            name,
            column.type if column.nullable else f"{column.type} not null",
            column.description,
            name in keys,
            column.expression or "",
            rules_of(spec, name),
        )
        for name in stored
        for column in [spec.columns[name]]
    ]


def rules_of(spec: AnySpec, column: str) -> list[Expectation]:
    """Return the rules that check a column."""
    return [rule for rule in spec.expectations if column in rule.checked_columns]


def rules_of_table(spec: AnySpec) -> list[Expectation]:
    """Return the rules that check no single column, such as the number of rows."""
    return [rule for rule in spec.expectations if not rule.checked_columns]

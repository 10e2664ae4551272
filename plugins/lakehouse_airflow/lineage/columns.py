"""Which columns a table's columns come from, and how, by the specs alone.

A column whose value becomes part of another one is DIRECT. A column that decides which rows or which values count is
INDIRECT: for one column, or for all of them (the facet's `dataset`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from openlineage.client.facet_v2 import column_lineage_dataset as facet
from openlineage.client.naming.dataset import DatasetNaming

from include.contracts.spec.expectation_arguments import COLUMN_ARGUMENTS, COLUMN_LIST_ARGUMENTS
from include.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from include.sql.expression import SqlExpression, Use

_DIRECT = (Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION)


@dataclass(frozen=True)
class Origin:
    """A column of a source on which a column, or every row, of a table depends.

    Attributes:
        source: the alias of a gold table's source; empty for the only source of another table.
        field: the column of the source.
        subtype: what happens to it, in the words of OpenLineage, such as `IDENTITY` or `JOIN`.
        is_direct: whether its value becomes part of the column.
        text: the Spark SQL, the cast or the rule.
    """

    source: str
    field: str
    subtype: str
    is_direct: bool
    text: str = ""


def origins_of_columns(spec: AnySpec, source_types: Mapping[str, str]) -> dict[str, list[Origin]]:
    """Return column -> what it comes from; a column that comes from none, such as `count(*)`, has no origin.

    Args:
        spec: the spec of the table.
        source_types: column of the source -> its type, where it is known: of another type the value is cast.
    """
    if isinstance(spec, GoldSpec):
        return {name: list(_of_sql(sql)) for name, sql in {**spec.group_by, **spec.measures}.items()}
    if isinstance(spec, BronzeSpec):
        return {name: list(_of_stored_column(spec, name, source_types)) for name in spec.columns}
    columns = {name: list(_of_stored_column(spec, name, source_types)) for name in spec.stored_columns}
    sequence = [origin for name in spec.sequence_by for origin in _of_stored_column(spec, name, source_types)]
    return columns | dict.fromkeys(spec.period_columns, sequence)


def origins_of_rows(spec: AnySpec) -> list[Origin]:
    """Return the columns that decide which rows a table has: keys, order, deletes, rules; joins, filters, groups."""
    if isinstance(spec, GoldSpec):
        return [
            *(origin for sql in spec.group_by.values() for origin in _of_sql(sql, "GROUP_BY")),
            *(origin for source in spec.sources.values() for origin in _of_sql(source.on or "", "JOIN")),
            *(
                origin
                for alias, source in spec.sources.items()
                for origin in _of_sql(source.where or "", "FILTER", alias)
            ),
        ]
    origins: list[Origin] = []
    if isinstance(spec, SilverSpec):
        deletes = (spec.apply_as_deletes, spec.apply_as_truncates)
        origins += _of_columns(spec, spec.keys, "JOIN", "rows are merged by key")
        origins += _of_columns(spec, spec.sequence_by, "SORT", "the last event of a key counts")
        origins += [origin for sql in deletes for origin in _of_sql(sql or "", "FILTER")]
    for rule in spec.row_rules:
        named = [rule.arguments[name] for name in COLUMN_ARGUMENTS if name in rule.arguments]
        named += [column for name in COLUMN_LIST_ARGUMENTS for column in rule.arguments.get(name, ())]
        origins += _of_columns(spec, named, "FILTER", rule.rule)
    return origins


def column_lineage(
    spec: AnySpec, sources: Mapping[str, Sequence[DatasetNaming]], source_types: Mapping[str, str]
) -> facet.ColumnLineageDatasetFacet:
    """Return the facet of a table.

    Args:
        spec: the spec of the table.
        sources: the datasets of each `Origin.source`.
        source_types: as of `origins_of_columns`.
    """
    columns = origins_of_columns(spec, source_types).items()
    fields = {name: facet.Fields(inputFields=_input_fields(origins, sources)) for name, origins in columns if origins}
    return facet.ColumnLineageDatasetFacet(fields=fields, dataset=_input_fields(origins_of_rows(spec), sources))


def _of_stored_column(spec: BronzeSpec | SilverSpec, name: str, source_types: Mapping[str, str]) -> Iterator[Origin]:
    column = spec.columns[name]
    for origin in _of_sql(_sql_of(spec, name)):
        is_cast = origin.subtype == Use.IDENTITY and source_types.get(origin.field, "string") != column.type
        text = f"cast({origin.field} as {column.type})" if is_cast else origin.text
        yield Origin("", origin.field, Use.TRANSFORMATION if is_cast else origin.subtype, origin.is_direct, text)


def _of_columns(spec: BronzeSpec | SilverSpec, columns: Iterable[str], subtype: str, text: str) -> Iterator[Origin]:
    """Yield the columns of the source behind columns of the table, which are its keys for example."""
    for name in columns:
        sql = _sql_of(spec, name) if name in spec.columns else name
        yield from (Origin("", origin.field, subtype, False, text) for origin in _of_sql(sql))


def _sql_of(spec: BronzeSpec | SilverSpec, name: str) -> str:
    expression = spec.columns[name].expression
    if expression is None and isinstance(spec, BronzeSpec) and spec.reads_kafka:
        expression = spec.kafka_source.transforms.get(name)
    return expression or f"`{name}`"


def _of_sql(sql: str, subtype: str = "", source: str = "") -> Iterator[Origin]:
    """Yield the columns of an expression, each with its own use, or all as `subtype`, which decides about rows."""
    for name, use in SqlExpression(sql).uses:
        alias, field = (name[0], name[1]) if len(name) > 1 and not source else (source, name[0])
        text = "" if use is Use.IDENTITY and not subtype else sql
        yield Origin(alias, field, subtype or use, not subtype and use in _DIRECT, text)


def _input_fields(origins: Iterable[Origin], sources: Mapping[str, Sequence[DatasetNaming]]) -> list[facet.InputField]:
    """Return one input field for each column of a dataset, with all that happens to it."""
    found: dict[tuple[str, str, str], list[facet.Transformation]] = {}
    for origin in dict.fromkeys(origins):
        kind = "DIRECT" if origin.is_direct else "INDIRECT"
        for dataset in sources.get(origin.source, ()):
            found.setdefault((dataset.get_namespace(), dataset.get_name(), origin.field), []).append(
                facet.Transformation(type=kind, subtype=str(origin.subtype), description=origin.text)
            )
    return [
        facet.InputField(namespace=namespace, name=name, field=field, transformations=steps)
        for (namespace, name, field), steps in found.items()
    ]

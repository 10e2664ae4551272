"""Which columns a table's columns come from, and how, by the specs alone.

A column whose value becomes part of another one is direct. A column that decides which rows or which values count is
indirect: for one column, or for all of them (`origins_of_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from millrace.contracts.spec.change_data import SOURCE_TABLE
from millrace.contracts.spec.expectation_arguments import COLUMN_ARGUMENTS, COLUMN_LIST_ARGUMENTS, SQL
from millrace.contracts.spec.nested_type import type_at
from millrace.contracts.spec.record_fields import paths_of, quoted
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.overview.described_columns import column_names
from millrace.sql.expression import Use, expression_of
from millrace.sql.query.lineage import Place, places_of_columns, places_of_rows

DELIVERED = ""
"""The table of what a source system delivers: the fields of its records, or the parts of its messages."""

_DIRECT = (Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION)


@dataclass(frozen=True)
class Origin:
    """A column on which a column, or every row, of a table depends.

    Attributes:
        table: a source of the table; the table itself for a column that an expression computes from another one of
            it; `DELIVERED` for bronze.
        field: the column of that table.
        subtype: what happens to it, in the words of OpenLineage, such as `IDENTITY` or `JOIN`.
        is_direct: whether its value becomes part of the column.
        text: the Spark SQL, the cast, how its values are read, or the rule.
        part: the names of the part of the column's value, if not all of it is read.
    """

    table: str
    field: str
    subtype: str
    is_direct: bool
    text: str = ""
    part: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The column, with the part of its value that is read, such as `properties.mag`."""
        return ".".join((self.field, *self.part))


def origins_of_columns(spec: AnySpec, specs: Mapping[str, AnySpec]) -> dict[str, list[Origin]]:
    """Return column -> what it comes from; a column that comes from none, such as `count(*)`, has no origin.

    Args:
        spec: the spec of the table.
        specs: table -> spec. Of a source without one, a column of each name is taken for one of text.
    """
    if isinstance(spec, SilverSpec) and spec.sources:
        of_each = [origins_of_columns(spec.of_source(table), specs) for table in spec.source_tables]
        columns = (*spec.columns, *spec.period_columns)
        return {name: list(dict.fromkeys(chain(*(each[name] for each in of_each)))) for name in columns}
    origins: dict[str, list[Origin]] = {}
    names = _Names(spec, specs, origins)
    if isinstance(spec, GoldSpec):
        for name, sql in {**spec.group_by, **spec.measures}.items():
            origins[name] = list(names.of_sql(sql))
        if spec.query is not None:
            places = places_of_columns(spec.query, columns_of_sources(spec, specs))
            origins |= {name: [names.of_place(place) for place in of_column] for name, of_column in places.items()}
        return origins
    for name in spec.columns:
        origins[name] = list(_of_stored_column(spec, name, names))
    if isinstance(spec, SilverSpec):
        sequence = [origin for name in spec.sequence_by for origin in origins[name]]
        origins |= dict.fromkeys(spec.period_columns, sequence)
    return origins


def origins_of_rows(spec: AnySpec, specs: Mapping[str, AnySpec]) -> list[Origin]:
    """Return the columns of the sources that decide which rows a table has.

    These are keys, order, deletes and rules; joins, filters and groups.
    """
    if isinstance(spec, SilverSpec) and spec.sources:
        of_each = (origins_of_rows(spec.of_source(table), specs) for table in spec.source_tables)
        return list(dict.fromkeys(chain(*of_each)))
    of_columns = origins_of_columns(spec, specs)
    names = _Names(spec, specs, of_columns)
    if isinstance(spec, GoldSpec):
        found = [origin for sql in spec.group_by.values() for origin in names.of_sql(sql, "GROUP_BY")]
        found += [origin for source in spec.sources.values() for origin in names.of_sql(source.on or "", "JOIN")]
        for alias, source in spec.sources.items():
            found += names.of_sql(source.where or "", "FILTER", alias)
        if spec.query is not None:
            found += map(names.of_place, places_of_rows(spec.query, columns_of_sources(spec, specs)))
        return found
    found = []
    if isinstance(spec, SilverSpec):
        deletes = (spec.apply_as_deletes, spec.apply_as_truncates)
        found += _behind_columns(of_columns, spec.keys, "JOIN", "rows are merged by key")
        found += _behind_columns(of_columns, spec.sequence_by, "SORT", "the last event of a key counts")
        found += [origin for sql in deletes for origin in names.of_sql(sql or "", "FILTER")]
    for rule in spec.row_rules:
        named = [rule.arguments[name] for name in COLUMN_ARGUMENTS if name in rule.arguments]
        named += [column for name in COLUMN_LIST_ARGUMENTS for column in rule.arguments.get(name, ())]
        if rule.name == SQL:
            named += [name[-1] for name in expression_of(rule.arguments["condition"]).columns]
        found += _behind_columns(of_columns, named, "FILTER", rule.rule)
    return list(of_sources(found, spec.table, of_columns))


def columns_of_sources(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> dict[str, tuple[str, ...]]:
    """Return alias -> the columns of the source; none for a source without a sound spec."""
    sources = ((alias, specs.get(source.table)) for alias, source in spec.sources.items())
    return {alias: column_names(of_source) if of_source else () for alias, of_source in sources}


def of_sources(origins: Iterable[Origin], table: str, of_columns: Mapping[str, list[Origin]]) -> Iterator[Origin]:
    """Yield the origins with those of a source in place of each other column of the table itself."""
    for origin in origins:
        if origin.table != table:
            yield origin
            continue
        for behind in of_sources(of_columns[origin.field], table, of_columns):
            is_direct = origin.is_direct and behind.is_direct
            subtype = origin.subtype if behind.is_direct and origin.subtype != Use.IDENTITY else behind.subtype
            part = (*behind.part, *origin.part) if behind.subtype == Use.IDENTITY else behind.part
            yield replace(behind, subtype=subtype, is_direct=is_direct, text=origin.text or behind.text, part=part)


@dataclass(frozen=True)
class _Names:
    """The columns that an expression of a spec may name.

    As in Spark, a column of a source comes before one of the table itself that an earlier expression computes.
    """

    spec: AnySpec
    specs: Mapping[str, AnySpec]
    earlier: Collection[str]

    def of_sql(self, sql: str, subtype: str = "", alias: str = "") -> Iterator[Origin]:
        """Yield the columns of an expression, each with its own use, or all as `subtype`, which decides about rows."""
        for name, use in expression_of(sql).uses:
            text = "" if use is Use.IDENTITY and not subtype else sql
            for table, field, part in self._places(name, alias):
                yield Origin(table, field, subtype or use, not subtype and use in _DIRECT, text, part)

    def of_place(self, place: Place) -> Origin:
        """Return a column that a query names."""
        alias, field, use = place
        return Origin(self._sources[alias], field, use, use in _DIRECT, "" if use == Use.IDENTITY else "query")

    def type_of(self, origin: Origin) -> str:
        """Return the type of a column of the source of a bronze or silver table: text where it is not known."""
        source = self.specs.get(origin.table)
        column = source.columns.get(origin.field) if isinstance(source, BronzeSpec) else None
        return type_at(column.type, origin.part) if column else "string"

    def _places(self, name: tuple[str, ...], alias: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield the table, the column and the part of it that a name means; none if that is not known."""
        sources = self._sources
        if name == (SOURCE_TABLE,) and isinstance(self.spec, SilverSpec):
            return
        if len(name) > 1 and name[0] in sources and not alias:
            alias, name = name[0], name[1:]
        candidates = [sources[alias]] if alias else list(dict.fromkeys(sources.values()))
        for table in candidates:
            source = self.specs.get(table)
            for column in column_names(source) if source else ():
                if column.lower() == name[0].lower():
                    yield table, column, name[1:]
                    return
        own = next((column for column in self.earlier if column.lower() == name[0].lower()), "")
        if own and not alias and not isinstance(self.spec, BronzeSpec):
            yield self.spec.table, own, name[1:]
        elif len(candidates) == 1:
            yield candidates[0], name[0], name[1:]

    @property
    def _sources(self) -> dict[str, str]:
        if isinstance(self.spec, GoldSpec):
            return {alias: source.table for alias, source in self.spec.sources.items()}
        return {"": self.spec.only_source if isinstance(self.spec, SilverSpec) else DELIVERED}


def _of_stored_column(spec: BronzeSpec | SilverSpec, name: str, names: _Names) -> Iterator[Origin]:
    column = spec.columns[name]
    for origin in names.of_sql(_sql_of(spec, name)):
        is_cast = origin.subtype == Use.IDENTITY and origin.table != spec.table and names.type_of(origin) != column.type
        field = ".".join(each if each.isidentifier() else quoted(each) for each in (origin.field, *origin.part))
        text = f"cast({field} as {column.type})" if is_cast else origin.text
        reading = column.reading if origin.is_direct else ""
        is_computed = is_cast or (reading and origin.subtype == Use.IDENTITY)
        text = f"{text or field} with {reading}" if reading else text
        yield replace(origin, subtype=Use.TRANSFORMATION if is_computed else origin.subtype, text=text)


def _behind_columns(
    of_columns: Mapping[str, list[Origin]], names: Iterable[str], subtype: str, text: str
) -> Iterator[Origin]:
    """Yield what columns of the table, such as its keys, come from, all as `subtype`."""
    for name in names:
        for origin in of_columns.get(name, ()):
            yield replace(origin, subtype=subtype, is_direct=False, text=text)


def _sql_of(spec: BronzeSpec | SilverSpec, name: str) -> str:
    if not isinstance(spec, BronzeSpec):
        return spec.columns[name].expression or quoted(name)
    path = paths_of(spec).get(name)
    if path is None:
        return spec.kafka_source.transforms[name]
    steps = (f"[{step}]" if isinstance(step, int) else f".{quoted(step)}" for step in path)
    return "".join(steps).removeprefix(".")

"""Which columns of tables are restricted: by their own spec, or because they come from a restricted column.

The modules that read SQL are imported only if a table is restricted: they take half a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from itertools import chain
from operator import or_
from typing import TYPE_CHECKING

from millrace.contracts.restricted import EVERYTHING_RESTRICTED, NOTHING_RESTRICTED, RestrictedColumns
from millrace.contracts.spec.common_settings import Classification
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.overview.described_columns import column_names

if TYPE_CHECKING:
    from millrace.overview.lineage.origins import Origin

_MOST: Classification = "restricted"


class Restrictions:
    """Finds the restricted columns of tables.

    Args:
        specs: table -> sound spec.
    """

    def __init__(self, specs: Mapping[str, AnySpec]) -> None:
        self._specs = specs
        self._found: dict[str, RestrictedColumns] = {}
        self._has_any = any(_states_any(spec) or set(spec.source_tables) - specs.keys() for spec in specs.values())

    def of(self, table: str) -> RestrictedColumns:
        """Return the restricted columns of a table.

        What a spec states for a column counts. A column without a statement is restricted if the table is, or if it
        comes from a restricted column. Of a table without a sound spec everything is restricted.
        """
        if table not in self._specs:
            return EVERYTHING_RESTRICTED
        if not self._has_any:
            return NOTHING_RESTRICTED
        if table not in self._found:
            self._found[table] = NOTHING_RESTRICTED  # of tables in a circle, which `lakehouse check` refuses
            self._found[table] = self._find(self._specs[table])
        return self._found[table]

    def of_each(self, tables: Iterable[str]) -> dict[str, RestrictedColumns]:
        """Return table -> its restricted columns."""
        return {table: self.of(table) for table in tables}

    def of_received(self, spec: AnySpec) -> RestrictedColumns:
        """Return the restricted columns of rows as a table receives them: in bronze its own, else its sources'.

        A source's column is restricted, too, if the table itself states so for what it makes of it.
        """
        of_sources = reduce(or_, map(self.of, spec.source_tables or (spec.table,)))
        read = self._read_by_stated(spec)
        return of_sources | RestrictedColumns(read, read, others=True) if read else of_sources

    def _find(self, spec: AnySpec) -> RestrictedColumns:
        stated, names = stated_classifications(spec), set[str]()
        columns = [*column_names(spec), *(spec.period_columns if isinstance(spec, SilverSpec) else ())]
        origins: Mapping[str, Iterable[Origin]] = {}
        unclear: Collection[str] = ()
        if follows := _MOST in stated.values() or any(self.of_each(spec.source_tables).values()):
            from millrace.overview.lineage.origins import origins_of_columns

            origins, unclear = origins_of_columns(spec, self._specs), _unclear_columns(spec, self._specs)
        read = self._read_by_stated(spec)
        for name in columns:  # SQL names columns of its own table only if they stand before it
            if name in stated:
                is_restricted = stated[name] == _MOST
            elif spec.classification == _MOST:
                is_restricted = True
            else:
                of_name = None if name in unclear else origins.get(name)
                is_restricted = follows and (of_name is None or self._has_restricted(of_name, spec.table, names, read))
            if is_restricted:
                names.add(name)
        others = spec.classification == _MOST or bool(names)
        if not others and isinstance(spec, SilverSpec) and any(self.of_each(spec.source_tables).values()):
            # It is made of all columns of a source, also of those that the table does not take.
            columns, names = [*columns, "_source_hash"], {*names, "_source_hash"}
        small_names, small_columns = (frozenset(map(str.lower, each)) for each in (names, columns))
        return RestrictedColumns(small_names, small_columns, others)

    def _has_restricted(
        self, origins: Iterable[Origin], table: str, own: Collection[str], read: Collection[str]
    ) -> bool:
        return any(
            each.field in own if each.table == table else each.field in self.of(each.table) or each.field in read
            for each in origins
            if each.table  # else a source system delivers it
        )

    def _read_by_stated(self, spec: AnySpec) -> frozenset[str]:
        """Return the columns of the sources of a silver table whose values it states to be restricted."""
        if not isinstance(spec, SilverSpec) or not _states_any(spec):
            return frozenset()
        from millrace.overview.lineage.origins import of_sources, origins_of_columns

        stated, origins = stated_classifications(spec), origins_of_columns(spec, self._specs)
        of_stated = (origins[name] for name in spec.columns if stated.get(name, spec.classification) == _MOST)
        found = of_sources(chain.from_iterable(of_stated), spec.table, origins)
        return frozenset(each.field.lower() for each in found if each.is_direct)


def stated_classifications(spec: AnySpec) -> dict[str, Classification]:
    """Return column -> its classification, of the columns for which the spec states one."""
    if isinstance(spec, GoldSpec):
        return dict(spec.classifications)
    return {name: column.classification for name, column in spec.columns.items() if column.classification}


def _states_any(spec: AnySpec) -> bool:
    return _MOST in (spec.classification, *stated_classifications(spec).values())


def _unclear_columns(spec: AnySpec, specs: Mapping[str, AnySpec]) -> set[str]:
    """Return the columns of which nobody can say which columns they read, such as `struct(*)`."""
    from millrace.overview.lineage.origins import columns_of_sources
    from millrace.sql.expression import expression_of
    from millrace.sql.query.lineage import names_every_place

    if isinstance(spec, GoldSpec) and spec.query is not None:
        is_clear = names_every_place(spec.query, columns_of_sources(spec, specs))
        return set() if is_clear else set(spec.query_columns)
    texts: list[tuple[str, str]] = []
    if isinstance(spec, GoldSpec):
        texts = [*spec.group_by.items(), *spec.measures.items()]
    elif isinstance(spec, SilverSpec):
        texts = [(name, column.expression) for name, column in spec.columns.items() if column.expression]
        texts += [item for source in spec.sources for item in source.columns.items()]
    # Of which of several sources a column is that Millrace adds to tables, only an alias before it says.
    has_several = isinstance(spec, GoldSpec) and len(spec.sources) > 1
    return {
        name
        for name, sql in texts
        if not expression_of(sql).names_its_columns
        or (has_several and any(column.startswith("_") for column, *_ in expression_of(sql).columns))
    }

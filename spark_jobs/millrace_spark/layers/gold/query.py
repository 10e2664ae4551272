"""Gold: the rows of a table's SELECT over pinned versions of its sources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import TEXTUAL, TIMES, TIMES_READ, WHOLE_NUMBERS
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.sql.checked_expression import require_no_queries
from millrace.sql.expression import expression_of
from millrace.sql.query.groups import lookup_as_query
from millrace.sql.query.readings import readings_of
from millrace.sql.query.reads import CHANGED, Lookup
from millrace.sql.query.refresh import has_other_value, refresh_of
from millrace.sql.query.select_query import query_of, require_read_only
from millrace.sql.query.trace import Trace
from millrace_spark.transforms.touched_rows import Touched, gives_touched, is_touched
from millrace_spark.transforms.touched_spans import TouchedSpans

_BY_TEXT = {"boolean": "", "string": "", **dict.fromkeys(WHOLE_NUMBERS, "number"), **dict.fromkeys(TIMES_READ, "time")}
"""The types besides decimals whose values Spark finds by their texts -> of which other types it finds them, too. As a
number, the text of a float is another one, and 0.0 = -0.0 have two texts. The text 1.00 is no whole number."""
_ALIKE_FOR_ZEROS = frozenset(("abs", "bround", "cast", "ceil", "ceiling", "coalesce", "floor", "if", "round"))
"""Functions that give, as a whole number, the same for 0.0 and -0.0."""
_OF_TEXTS = re.compile(r"string|char|like|\|\||/", re.IGNORECASE)
"""What besides functions tells these two apart: a text, and a quotient."""


@dataclass(frozen=True)
class QueryRefresh:
    """By which values a batch computes the table of a query.

    Attributes:
        columns: the columns of the query; none if none is traced.
        expressions: alias -> the values that a row affects, as Spark SQL with the types of the columns.
        whole: alias -> why its changes may affect every row.
        lookups: alias -> SELECTs of the keys (`touched`) that its changed rows affect besides, which they read as the
            view `_changed_<alias>`; all rows of such a source are read.
        reason: why columns that are traced do not choose rows: what is compared has other types.
    """

    columns: tuple[str, ...]
    expressions: Mapping[str, Sequence[Sequence[str]]]
    whole: Mapping[str, str]
    reason: str = ""
    lookups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, list[str]]:
        """Alias -> Spark SQL of the keys that a row affects."""
        return {alias: [key_of(parts) for parts in values] for alias, values in self.expressions.items()}


def refresh_of_table(
    session: SparkSession, spec: GoldSpec, sources: Mapping[str, DataFrame], found: Trace | None = None
) -> QueryRefresh:
    """Return by which values a table can be computed: those that are traced; where none are, those of `refresh_from`.

    Of a text that says the same as the trace, the author's own is run. What changes of a source affect that the spec
    calls a lookup, is found by its own join if no other is traced.

    Args:
        session, spec, sources: as for `rows_of_query`.
        found: as `refresh_of` returns it, if that is known.
    """
    found = found or trace_of(spec, sources)
    looked_up = [alias for alias, source in spec.sources.items() if source.lookup]
    if not spec.refresh_from:
        refresh = refresh_of_query(session, spec, sources, found)
        if next(iter(spec.sources)) not in refresh.expressions:
            return refresh
    else:
        others = [
            alias
            for alias, text in spec.refresh_from.items()
            if alias in found.expressions and has_other_value(found, alias, text)
        ]
        traced = refresh_of_query(session, spec, sources, found) if others or looked_up else QueryRefresh((), {}, {})
        expressions: dict[str, Sequence[Sequence[str]]] = {alias: [[text]] for alias, text in spec.refresh_from.items()}
        expressions |= {alias: traced.expressions[alias] for alias in others if alias in traced.expressions}
        # What is stated has another value than the trace, so that it does not stand in for this.
        is_unknown = any(alias not in traced.expressions for alias in others)
        reason = _unlisted_value(session, spec, sources, expressions) or (traced.reason if is_unknown else "")
        lookups = {alias: traced.lookups[alias] for alias in looked_up if alias in traced.lookups}
        refresh = QueryRefresh(spec.refresh_columns, expressions, {}, reason, lookups)
    stated = [alias for alias in looked_up if alias not in refresh.lookups]
    (value,) = refresh.keys[next(iter(spec.sources))]
    by_join = {alias: [lookup_as_query(spec.sources, alias, value, f"{CHANGED}{alias}")] for alias in stated}
    return replace(
        refresh,
        expressions={alias: values for alias, values in refresh.expressions.items() if alias not in stated},
        whole={alias: why for alias, why in refresh.whole.items() if alias not in stated},
        lookups={**refresh.lookups, **by_join},
    )


def trace_of(spec: GoldSpec, sources: Mapping[str, DataFrame]) -> Trace:
    """Return the trace of a table over these sources."""
    return refresh_of(spec, {alias: tuple(rows.columns) for alias, rows in sources.items()})


def refresh_of_query(
    session: SparkSession, spec: GoldSpec, sources: Mapping[str, DataFrame], found: Trace | None = None
) -> QueryRefresh:
    """Return by which values the table of a query can be computed.

    The trace holds if Spark sees the same query in what sqlglot has read: it compares both when it has resolved them.

    The texts of the values choose rows, so each expression must have the type of the column, or one in which equal
    values have equal texts. Spark compares other types by rules that a text does not follow: 1 and 1.0, '1' and 1.

    Args:
        session, spec, sources, found: as for `refresh_of_table`.
    """
    found = found or trace_of(spec, sources)
    if found.reason:
        return QueryRefresh((), {}, {})
    schema = rows_of_query(session, spec, sources).schema
    if other := read_otherwise(session, query_of(spec.select).spark_text):
        way_out = "write parentheses around operations within others, or another function"
        return QueryRefresh(found.columns, {}, {}, f"the trace may read {other} in another way than Spark: {way_out}")
    kinds = [schema[column].dataType.simpleString() for column in found.columns]
    types = dict(zip(found.columns, kinds, strict=True))
    try:
        expressions = {
            alias: [_typed(texts, types, alias, sources[alias]) for texts in values]
            for alias, values in found.parts.items()
        }
    except _OtherTypesError as error:
        return QueryRefresh(found.columns, {}, {}, str(error))
    for group in found.alike:
        owns = [_type_of(sources[alias], text) for alias, text in group]
        if len({*owns} & TEXTUAL) != 1 or len({*owns}) != 1:
            return QueryRefresh(found.columns, {}, {}, _compared(group, owns))
    whole, lookups = dict(found.whole), {}
    for alias, of_alias in found.lookups.items():
        sources[alias].createOrReplaceTempView(f"{CHANGED}{alias}")  # rows of the same types as the changed ones
        try:
            lookups[alias] = [_touched_by(session, lookup, types) for lookup in of_alias]
        except _OtherTypesError as error:
            whole[alias] = str(error)
    return QueryRefresh(found.columns, expressions, whole, lookups=lookups)


def touched_by_lookup(session: SparkSession, alias: str, lookup: str, changed: DataFrame) -> DataFrame:
    """Return the keys (`touched`) that changed rows of a source affect by a lookup.

    Args:
        session: the session, with a view of each source.
        alias: the source.
        lookup: as `refresh_of_table` returns it.
        changed: the changed rows, as they were and as they are.
    """
    changed.createOrReplaceTempView(f"{CHANGED}{alias}")
    return session.sql(lookup)


def key_of(parts: Sequence[str]) -> str:
    """Return Spark SQL of the key of a value: the value itself, or for several columns their texts as a JSON array.

    >>> key_of(["`day`"]), key_of(["`day`", "`origin`"])
    ('`day`', 'to_json(array(CAST(`day` AS STRING), CAST(`origin` AS STRING)))')
    """
    if len(parts) == 1:
        return parts[0]
    return f"to_json(array({', '.join(f'CAST({part} AS STRING)' for part in parts)}))"


def parts_of(touched: Touched, parts: Sequence[str]) -> Iterator[tuple[str, Touched]]:
    """Yield what is selected by touched keys: the key; and each part of it, by which Delta can skip files.

    >>> [texts for _, texts in parts_of(['["2013-01-04","JFK"]', '["2013-01-04","LGA"]'], ["day", "origin"])][1:]
    [('2013-01-04',), ('JFK', 'LGA')]
    >>> [texts for _, texts in parts_of([], ["day", "origin"])]  # changed rows that are joined to none
    [[], (), ()]
    """
    yield key_of(parts), touched
    if len(parts) > 1 and not isinstance(touched, TouchedSpans):
        values = [*zip(*(json.loads(key or "") for key in touched), strict=True)] or [()] * len(parts)
        yield from ((part, tuple(dict.fromkeys(texts))) for part, texts in zip(parts, values, strict=True))


def rows_of_query(session: SparkSession, spec: GoldSpec, sources: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a table's query, or of its groups.

    Args:
        session: the session of the batch, in which each source becomes a temporary view.
        spec: the spec of the table.
        sources: alias -> the rows that the query sees, all of that session.

    Raises:
        BadInputError: the query does more than read its sources, or would give other rows in another run.
    """
    if spec.query is None:
        require_no_queries(spec.table, spec.expressions.values())
    else:
        require_read_only(spec.table, spec.query, spec.sources)
    for alias, rows in sources.items():
        rows.createOrReplaceTempView(alias)
    # Within parentheses Spark accepts nothing but a query, whatever the check may have overlooked.
    text = spec.select if spec.query is None else query_of(spec.query).spark_text
    return session.sql(f"SELECT * FROM (\n{text}\n)")


def touched_rows_of_query(
    session: SparkSession,
    spec: GoldSpec,
    sources: Mapping[str, DataFrame],
    refresh: QueryRefresh,
    touched: Touched,
) -> DataFrame:
    """Return the rows of a table's query that have one of the touched values, from the rows that they depend on.

    Args:
        session, spec, sources: as for `rows_of_query`.
        refresh: as `refresh_of_query` returns it.
        touched: keys of its columns.
    """
    read = dict(sources)
    for alias, affected in refresh.expressions.items():
        if alias in {**refresh.whole, **refresh.lookups}:
            continue
        rows = sources[alias].where(spec.sources[alias].where or "true")  # an expression may fail for other rows
        conditions = [
            [gives_touched(sql, rows, values) for sql, values in parts_of(touched, parts)] for parts in affected
        ]
        chosen = rows.where(reduce(or_, (reduce(and_, parts) for parts in conditions)))
        # Spark adds a column to rows that are chosen by a window of time, which a star in the query would read.
        read[alias] = chosen.select(*(f"`{name}`" for name in rows.columns))
    columns = [f"`{column}`" for column in refresh.columns]
    return rows_of_query(session, spec, read).where(is_touched(key_of(columns), touched))


def read_otherwise(session: SparkSession, text: str) -> str:
    """Return which part of a query Spark does not see in what sqlglot has read; empty if it sees the same query.

    Args:
        session: the session, with a view of each source.
        text: the query, as Spark can parse it.
    """
    for part in readings_of(text):
        written = session.sql(f"SELECT * FROM (\n{part.written}\n)")
        if not any(_is_same_query(session, written, read) for read in part.read):
            return f"`{part.name}` in WITH" if part.name else "the query"
        if part.name:
            (written.toDF(*part.columns) if part.columns else written).createOrReplaceTempView(part.name)
    return ""


def _is_same_query(session: SparkSession, written: DataFrame, read: str) -> bool:
    try:
        return written.sameSemantics(session.sql(f"SELECT * FROM (\n{read}\n)"))
    except AnalysisException:  # Spark cannot even read what sqlglot writes
        return False


def _unlisted_value(
    session: SparkSession,
    spec: GoldSpec,
    sources: Mapping[str, DataFrame],
    expressions: Mapping[str, Sequence[Sequence[str]]],
) -> str:
    """Return which value that a row affects cannot choose rows by its text, and why; empty if all can."""
    group = spec.refreshed_group
    kinds = {group: rows_of_query(session, spec, sources).schema[group].dataType.simpleString()}
    kinds |= {f"refresh_from.{alias}": _type_of(sources[alias], text) for alias, [[text]] in expressions.items()}
    for name, kind in kinds.items():
        if kind not in _BY_TEXT and not kind.startswith("decimal("):
            return f"{name} is {kind}, by whose values no run can choose rows"
    families = {name: _BY_TEXT.get(kind, "decimal") or kind for name, kind in kinds.items()}
    other = next((name for name, family in families.items() if family != families[group]), "")
    return other and f"{other} is {kinds[other]}, and {group} is {kinds[group]}: their values have other texts"


class _OtherTypesError(Exception):
    """What is compared has types whose equal values may have other texts; the text says which."""


def _typed(texts: Sequence[str], types: Mapping[str, str], alias: str, rows: DataFrame) -> list[str]:
    """Return the parts of a value with the types of the columns, by name, if equal values then have equal texts."""
    parts = []
    for (column, kind), text in zip(types.items(), texts, strict=True):
        own = _type_of(rows, text)
        if kind not in TEXTUAL or not _are_alike({own, kind}):
            raise _OtherTypesError(f"{column} is {kind}, and {_plain(text)} of {alias} is {own}")
        if inexact := _inexact_column(rows, text, kind):
            raise _OtherTypesError(f"{column} is computed from {inexact}, and may be another one for 0.0 than for -0.0")
        parts.append(text if own == kind else f"try_cast({text} AS {kind})")
    return parts


def _touched_by(session: SparkSession, lookup: Lookup, types: Mapping[str, str]) -> str:
    """Return the SELECT of the keys that a lookup finds, with the types of the columns."""
    if lookup.like:
        for part, other in zip(session.sql(lookup.keys).schema, session.sql(lookup.like).schema, strict=True):
            own, kind = part.dataType.simpleString(), other.dataType.simpleString()
            if not _are_alike({own, kind}):
                raise _OtherTypesError(f"{part.name} of {lookup.alias} is {own}, and {kind} where {lookup} compares it")
    values = []
    for part, (column, kind) in zip(session.sql(lookup.query).schema, types.items(), strict=True):
        own = part.dataType.simpleString()
        if not _are_alike({own, kind}):
            raise _OtherTypesError(f"{column} is {kind}, and {own} where {lookup} finds it")
        values.append(part.name if own == kind else f"try_cast({part.name} AS {kind})")
    return f"SELECT {key_of(values)} AS touched FROM (\n{lookup.query}\n)"


def _are_alike(types: set[str]) -> bool:
    return len(types) == 1 or types <= {*WHOLE_NUMBERS} or types <= {*TIMES}


def _compared(values: Sequence[tuple[str, str]], types: Sequence[str]) -> str:
    stated = (f"{_plain(text)} of {alias} is {own}" for (alias, text), own in zip(values, types, strict=True))
    return f"a join compares them, and {' and '.join(dict.fromkeys(stated))}"


def _type_of(rows: DataFrame, expression: str) -> str:
    return rows.select(F.expr(expression).alias("value")).schema["value"].dataType.simpleString()


def _inexact_column(rows: DataFrame, expression: str, kind: str) -> str:
    """Return a column for whose equal values 0.0 and -0.0 an expression may differ; empty if there is none."""
    is_alike = _ALIKE_FOR_ZEROS.issuperset(map(str.lower, expression_of(expression).functions))
    if kind in WHOLE_NUMBERS and is_alike and not _OF_TEXTS.search(expression):
        return ""
    types = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
    names = (name.lower() for name, *_ in expression_of(expression).columns)
    return next((name for name in names if re.search(r"\b(float|double)\b", types.get(name, ""))), "")


def _plain(expression: str) -> str:
    return expression.replace("`", "")

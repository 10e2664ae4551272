"""Gold: the rows of a query over pinned versions of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.spec.table_spec import GoldSpec
from include.sql.query.refresh import refresh_of
from include.sql.query.select_query import require_read_only
from spark_jobs.transforms.touched_rows import Touched, gives_touched, is_touched

_INTEGERS = frozenset(("tinyint", "smallint", "int", "bigint"))
_TIMES = frozenset(("date", "timestamp"))
_AS_TEXT = _INTEGERS | _TIMES | {"string"}
"""The types whose equal values have equal texts."""


@dataclass(frozen=True)
class QueryRefresh:
    """By which values a batch computes the table of a query.

    Attributes:
        column: the column of the query; empty if none is traced.
        expressions: alias -> Spark SQL over its own columns, each with the type of the column.
        whole: alias -> why its changes may affect every row.
        reason: why a column that is traced does not choose rows: what is compared has other types.
    """

    column: str
    expressions: Mapping[str, Sequence[str]]
    whole: Mapping[str, str]
    reason: str = ""


def refresh_of_query(session: SparkSession, spec: GoldSpec, sources: Mapping[str, DataFrame]) -> QueryRefresh:
    """Return by which values the table of a query can be computed.

    The texts of the values choose rows, so each expression must have the type of the column, or one in which equal
    values have equal texts. Spark compares other types by rules that a text does not follow: 1 and 1.0, '1' and 1.
    """
    found = refresh_of(spec, {alias: tuple(rows.columns) for alias, rows in sources.items()})
    if found.reason:
        return QueryRefresh("", {}, {})
    kind = rows_of_query(session, spec, sources).schema[found.column].dataType.simpleString()
    expressions: dict[str, list[str]] = {}
    for alias, texts in found.expressions.items():
        for text in texts:
            own = _type_of(sources[alias], text)
            if kind not in _AS_TEXT or not (own == kind or {own, kind} <= _INTEGERS or {own, kind} <= _TIMES):
                reason = f"{found.column} is {kind}, and {_plain(text)} of {alias} is {own}"
                return QueryRefresh(found.column, {}, {}, reason)
            expressions.setdefault(alias, []).append(text if own == kind else f"try_cast({text} AS {kind})")
    for group in found.alike:
        kinds = {f"{_plain(text)} of {alias}": _type_of(sources[alias], text) for alias, text in group}
        if len({*kinds.values()} & _AS_TEXT) != 1 or len({*kinds.values()}) != 1:
            reason = " and ".join(f"{text} is {own}" for text, own in kinds.items())
            return QueryRefresh(found.column, {}, {}, f"a join compares them, and {reason}")
    return QueryRefresh(found.column, expressions, found.whole)


def rows_of_query(session: SparkSession, spec: GoldSpec, sources: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of a table's query.

    Args:
        session: the session of the batch, in which each source becomes a temporary view.
        spec: the spec of the table.
        sources: alias -> the rows that the query sees, all of that session.

    Raises:
        BadInputError: the query does more than read its sources, or would give other rows in another run.
    """
    require_read_only(spec.table, spec.query or "", spec.sources)
    for alias, rows in sources.items():
        rows.createOrReplaceTempView(alias)
    # Within parentheses Spark accepts nothing but a query, whatever the check may have overlooked.
    return session.sql(f"SELECT * FROM (\n{spec.query}\n)")


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
        touched: values of its column.
    """
    read = dict(sources)
    for alias, texts in refresh.expressions.items():
        read[alias] = sources[alias].where(
            reduce(or_, (gives_touched(text, sources[alias], touched) for text in texts))
        )
    return rows_of_query(session, spec, read).where(is_touched(refresh.column, touched))


def _type_of(rows: DataFrame, expression: str) -> str:
    return rows.select(F.expr(expression).alias("value")).schema["value"].dataType.simpleString()


def _plain(expression: str) -> str:
    return expression.replace("`", "")

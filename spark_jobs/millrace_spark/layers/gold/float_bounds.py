"""Between which values the sums of doubles of a gold table may be: no two runs add the numbers in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, NumericType

from millrace.contracts.spec.table_spec import GoldSpec
from millrace.sql.float_sums import error_column, error_of, selected, sums_of
from millrace_spark.transforms.differences import GREATEST, LEAST


def with_bounds(compute: Callable[[GoldSpec], DataFrame], spec: GoldSpec) -> DataFrame:
    """Return the rows of a table, with the least and the greatest value that another run may compute.

    They have the names of the columns after `LEAST` and `GREATEST`, and exist for numbers that are computed from sums
    of doubles: measures, and columns of the SELECT that gives the rows of a query. Sums in its subqueries have none.

    Args:
        compute: returns the rows by a spec.
        spec: the spec of the table.
    """
    texts = spec.measures if spec.query is None else selected(spec.query)[0]
    sums = list(dict.fromkeys(each.text for text in texts.values() for each in sums_of(text)))
    if not sums:
        return compute(spec)
    kinds = compute(_with_columns(spec, {f"millrace_sum_{at}": text for at, text in enumerate(sums)})).schema
    inexact = {text for at, text in enumerate(sums) if isinstance(kinds[f"millrace_sum_{at}"].dataType, DoubleType)}
    errors: dict[str, str] = {}
    for name, text in texts.items():
        computed = {earlier.lower() for earlier in errors}
        found = [each for each in sums_of(text, computed) if each.text in inexact or each.text.lower() in computed]
        if found and isinstance(kinds[name].dataType, NumericType):
            errors[name] = error_of(text, found)
    rows = compute(_with_columns(spec, {error_column(name): error for name, error in errors.items()}))
    bounds: dict[str, Column] = {}
    for name in errors:
        value, error = F.col(f"`{name}`").cast("double"), F.col(f"`{error_column(name)}`")
        bounds |= {f"{LEAST}{name}": value - error, f"{GREATEST}{name}": value + error}
    return rows.select("*", *(bound.alias(name) for name, bound in bounds.items())).drop(*map(error_column, errors))


def _with_columns(spec: GoldSpec, columns: Mapping[str, str]) -> GoldSpec:
    if spec.query is None:
        return spec.model_copy(update={"measures": {**spec.measures, **columns}})
    _, at = selected(spec.query)
    more = "".join(f", {text} AS `{name}`" for name, text in columns.items())
    return spec.model_copy(update={"query": spec.query[:at] + more + spec.query[at:]})

"""Expectations of a shop's own: copy this file to expectations/."""

from functools import reduce
from operator import add

from great_expectations.compatibility.pyspark import functions as F
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations import ExpectColumnValuesToBeBetween
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)


class ColumnValuesEan13(ColumnMapMetricProvider):
    """True for a text of 13 digits, the last of which is the check digit of the others."""

    condition_metric_name = "column_values.ean13"

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column, **kwargs):
        digits = [F.substring(column, place, 1).try_cast("int") for place in range(1, 14)]
        weighted = [digit * (1 if place % 2 == 0 else 3) for place, digit in enumerate(digits)]
        return column.rlike("^[0-9]{13}$") & (reduce(add, weighted) % 10 == 0)


class ExpectColumnValuesToBeEan13(ColumnMapExpectation):
    """Values are barcodes with a right check digit."""

    map_metric = "column_values.ean13"
    success_keys = ("mostly",)


class ExpectPriceToBePlausible(ExpectColumnValuesToBeBetween):
    """A price is positive; what is too expensive, a spec may say."""

    column: str = "price"
    min_value: float = 0
    max_value: float = 10_000
    strict_min: bool = True

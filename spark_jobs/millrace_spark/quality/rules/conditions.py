"""Find out whether Spark can read a condition, and the frame that it is about."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from millrace_spark.quality.verdicts.rule_result import one_line


def condition_error(df: DataFrame, condition: str) -> str:
    """Return why Spark cannot read the text as a condition on a row of `df`; empty if it can. No job is run."""
    try:
        kind = df.select(F.expr(condition)).schema[0].dataType
    except PySparkException as error:
        require_readable(df)
        return one_line(str(error))
    return "" if isinstance(kind, BooleanType) else f"it is not a condition: its value is {kind.simpleString()}"


def require_readable(df: DataFrame) -> None:
    """Raise Spark's error if it cannot read a single row, so that no rule is blamed for a lost server.

    Raises:
        PySparkException: the frame cannot be read.
    """
    df.limit(1).collect()

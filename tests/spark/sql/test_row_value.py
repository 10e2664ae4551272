"""The values that prove a refresh wrong are those that Spark computes."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace.sql.values.counter_example import SAMPLES
from millrace.sql.values.row_value import Value, value_of
from millrace.sql.values.terms import term_of
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE

OF_TIMES = [
    "x", "to_date(x)", "timestamp(x)", "date_add(x, 3)", "date_sub(x, 1)", "x + interval 36 hours",
    "interval 1 month + x", "x - interval '2' years", "x - interval '1 week'", "timestampadd(QUARTER, 1, x)",
    "dateadd(MINUTE, -1, x)",
    "add_months(x, -3)", "last_day(x)", "trunc(x, 'MM')", "trunc(x, 'WEEK')", "date_trunc('QUARTER', x)",
    "date_trunc('YEAR', x)", "date_trunc('HOUR', x)", "year(x)", "quarter(x)", "month(x)", "day(x)", "dayofmonth(x)",
    "dayofweek(x)", "dayofyear(x)", "weekofyear(x)", "hour(x)", "minute(x)", "second(x)", "x >= '2024-02-29'",
    "not x between date '2012-07-31' and timestamp '2024-02-29 12:00:00'", "x in ('2024-02-29', '2023-12-31')",
    *(f"{way}_utc_timestamp(x, '{zone}')" for way in ("from", "to") for zone in ("America/New_York", "Asia/Kolkata")),
]  # fmt: skip
EXPRESSIONS = {
    "date": [*OF_TIMES, "x + 1", "x - 2"],
    "timestamp": OF_TIMES,
    "timestamp_ntz": ["to_date(x)", "date_trunc('DAY', x)", "from_utc_timestamp(x, 'Europe/Berlin')"],
    "int": ["x + 1", "x - (3 - x)", "-x * 2", "x = 2 or x <> 1 and x < 7", "x is not null and x <=> 0"],
    "decimal(10,2)": ["x + 1", "x * 2 - 1.5"],
    "double": ["x + 1", "x - 5"],
    "string": ["x", "x = 'a'"],
}


def comparable(value: object) -> Value:
    """Return a value of Spark as `value_of` gives it."""
    if isinstance(value, bool | str | datetime):
        return value
    if isinstance(value, date):
        return datetime.fromisoformat(value.isoformat())
    return Decimal(str(value))


def test_the_values_of_terms_are_those_of_spark(spark: SparkSession) -> None:
    samples = {kind: SAMPLES[kind.partition("(")[0]] for kind in EXPRESSIONS}
    texts = [(kind, text) for kind, of_kind in EXPRESSIONS.items() for text in of_kind]
    columns = {kind: f"x{at}" for at, kind in enumerate(EXPRESSIONS)}
    length = max(map(len, samples.values()))
    padded = [[str(of_kind[at % len(of_kind)]) for of_kind in samples.values()] for at in range(length)]
    rows = spark.createDataFrame([(at, *row) for at, row in enumerate(padded)], ["at", *columns.values()])
    typed = rows.select("at", *(F.col(column).cast(kind).alias(column) for kind, column in columns.items()))
    found = typed.select("at", *(F.expr(re.sub(r"\bx\b", columns[kind], text)) for kind, text in texts)).collect()
    for row in found:
        for (kind, text), value in zip(texts, row[1:], strict=True):
            term, sample = term_of(text, ".".join), samples[kind][row[0] % len(samples[kind])]
            assert term is not None
            assert value_of(term, "x", sample) == comparable(value), (kind, text, sample)
    assert len(found) == length

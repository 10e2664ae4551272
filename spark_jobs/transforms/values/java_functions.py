"""Functions of Millrace in Java, for what Spark's own functions do not keep: the digits of numbers, parts of JSON."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

_RECORD = "struct<texts:array<string>,more:map<string,string>>"
_TYPES = {
    "JsonElements": "array<binary>",
    "JsonList": "array<string>",
    "JsonLosses": "map<string,string>",
    "JsonMap": "map<string,string>",
    "JsonRecord": _RECORD,
    "JsonRecords": f"array<{_RECORD}>",
    "ExactDecimal": "string",
    "ExactDouble": "double",
}
"""Class of `spark_jobs/formats` -> the Spark type of its results."""


def register_java_functions(session: SparkSession) -> None:
    """Make the functions known to a session, so that `java_function` can call them."""
    for name, kind in _TYPES.items():
        session.udf.registerJavaFunction(_function(name), f"io.millrace.formats.{name}", kind)


def java_function(name: str, *arguments: Column) -> Column:
    """Return the result of a function, by the name of its class; the class says what it takes."""
    return F.call_function(_function(name), *arguments)


def _function(name: str) -> str:
    return f"millrace_{name.lower()}"

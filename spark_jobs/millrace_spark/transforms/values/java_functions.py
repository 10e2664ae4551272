"""Functions of Millrace in Java, for what Spark's own functions do not keep: the digits of numbers, parts of JSON."""

from __future__ import annotations

from weakref import WeakSet

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

_RECORD = "struct<texts:array<string>,more:string>"
_TYPES = {
    "JsonElements": "array<binary>",
    "JsonList": "array<string>",
    "JsonLosses": "string",
    "JsonMap": "map<string,string>",
    "JsonRecord": _RECORD,
    "JsonRecords": f"array<{_RECORD}>",
    "JsonUnion": "string",
    "ExactDecimal": "string",
    "ExactDouble": "double",
    "SkippedTime": "boolean",
    "WideDecimal": "string",
}
"""Class of `spark_jobs/millrace_spark/formats` -> the Spark type of its results."""


_sessions = WeakSet[SparkSession]()
"""The sessions that know the functions: on Spark Connect it takes 0.1 s to tell one of them all."""


def with_java_functions(df: DataFrame) -> DataFrame:
    """Return a frame whose session knows the functions, so that its columns can be of `java_function`."""
    session = df.sparkSession
    if session not in _sessions:
        for name, kind in _TYPES.items():
            session.udf.registerJavaFunction(_function(name), f"io.millrace.formats.{name}", kind)
        _sessions.add(session)
    return df


def java_function(name: str, *arguments: Column) -> Column:
    """Return the result of a function, by the name of its class; the class says what it takes."""
    return F.call_function(_function(name), *arguments)


def _function(name: str) -> str:
    return f"millrace_{name.lower()}"

"""Takes JSON arrays apart: one record an element, each as the text that it is in its file."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType

from spark_jobs.transforms.records import RECORD

_FUNCTION = "millrace_json_elements"
_CLASS = "io.millrace.formats.JsonElements"
_MARK = "not one sound JSON array: "
_TOLD = re.compile(rf"{_MARK}(.+?) - have it")


def json_elements(session: SparkSession, whole: DataFrame, source: str) -> DataFrame:
    """The elements of files that are one JSON array each.

    Args:
        session: where the function that does it is made known; it is Java, since `from_json` writes numbers anew.
        whole: a row for each file: its text as `value`, and other columns.
        source: the column with the name of the file.

    Returns:
        A row for each element: its text as `_record`, and the other columns. Reading it fails at a file that is no
        array: it changed since it was looked at, or is taken for one by Python's reader alone.
    """
    session.udf.registerJavaFunction(_FUNCTION, _CLASS, ArrayType(BinaryType()))
    refusal = F.raise_error(F.concat(F.lit(_MARK), source, F.lit(" - have it delivered again"))).cast("array<binary>")
    elements = F.coalesce(F.call_function(_FUNCTION, F.col("value").cast("binary")), refusal)
    others = [name for name in whole.columns if name != "value"]
    return whole.select(F.explode(elements).alias(RECORD), *others).withColumn(RECORD, F.col(RECORD).cast("string"))


def no_array_in(error: BaseException) -> str:
    """The file that made a read fail because it is no JSON array; empty if that is not why.

    >>> no_array_in(RuntimeError("[USER_RAISED_EXCEPTION] not one sound JSON array: a/b.json - have it delivered"))
    'a/b.json'
    """
    found = _TOLD.search(str(error))
    return found[1] if found else ""

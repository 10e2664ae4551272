"""Split JSON arrays into records: one record per element, with the element's text in the file."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace_spark.transforms.records import RECORD
from millrace_spark.transforms.values.java_functions import java_function, with_java_functions

_ERROR_PREFIX = "not one sound JSON array: "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(.+?) - have it")


def json_elements(files: DataFrame, source: str) -> DataFrame:
    """Return the elements of files that each contain one JSON array.

    Args:
        files: one row per file: its text as `value`, and other columns.
        source: the column with the name of the file.

    Returns:
        One row per element: its text as `_record`, and the other columns. Reading it fails at a file that is no array:
        the file changed after its inspection, or only Python's reader accepts it as an array.
    """
    refusal = F.raise_error(F.concat(F.lit(_ERROR_PREFIX), source, F.lit(" - have it delivered again"))).cast(
        "array<binary>"
    )
    elements = F.coalesce(java_function("JsonElements", F.col("value").cast("binary")), refusal)
    others = [name for name in files.columns if name != "value"]
    rows = with_java_functions(files).select(F.explode(elements).alias(RECORD), *others)
    return rows.withColumn(RECORD, F.col(RECORD).cast("string"))


def invalid_array_in(error: BaseException) -> str:
    """Return the file that failed a read because it is no JSON array; empty for another error.

    >>> invalid_array_in(RuntimeError("[USER_RAISED_EXCEPTION] not one sound JSON array: a/b.json - have it delivered"))
    'a/b.json'
    """
    match = _ERROR.search(str(error))
    return match[1] if match else ""

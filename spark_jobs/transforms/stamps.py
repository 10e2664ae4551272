"""The stamp of a row: which batch wrote it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.control.batch import Intent

STAMP_COLUMNS = {"_stream": "string", "_batch_seq": "bigint", "_batch_token": "string"}


def with_stamp(df: DataFrame, intent: Intent) -> DataFrame:
    """Add `_stream`, `_batch_seq` and `_batch_token` of the batch that is about to be written."""
    return df.withColumns(
        {
            "_stream": F.lit(intent.stream),
            "_batch_seq": F.lit(intent.batch_seq).cast("bigint"),
            "_batch_token": F.lit(intent.token),
        }
    )

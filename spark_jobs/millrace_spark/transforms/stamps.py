"""The stamp of a row, which names the batch that wrote it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.control.log.batch import Intent

BATCH_SEQ, BATCH_TOKEN = "_batch_seq", "_batch_token"

STAMP_COLUMNS = {"_stream": "string", BATCH_SEQ: "bigint", BATCH_TOKEN: "string"}


def with_stamp(df: DataFrame, intent: Intent) -> DataFrame:
    """Add `_stream`, `_batch_seq` and `_batch_token` of the batch that is about to be written."""
    return df.withColumns(
        {
            "_stream": F.lit(intent.stream),
            BATCH_SEQ: F.lit(intent.batch_seq).cast("bigint"),
            BATCH_TOKEN: F.lit(intent.token),
        }
    )


def is_written_by(intent: Intent) -> Column:
    """Return true for the rows of one batch; Delta skips files by the batch number, so the condition has both."""
    return (F.col(BATCH_SEQ) == intent.batch_seq) & (F.col(BATCH_TOKEN) == intent.token)

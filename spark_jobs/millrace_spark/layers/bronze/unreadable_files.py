"""Find the landing files that made a batch fail, so that the next plan leaves them out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import FileFact
from millrace.errors import BadInputError, first_line
from millrace_spark.spark_errors import without_values

Read = Callable[[Sequence[FileFact]], DataFrame]
"""Reads files as records."""

_NAMED = re.compile(r"FAILED_READ_FILE[^]]*\].*?(?:file:/*(?=/)|(?=s3a:))(\S+?)\.?\s", re.DOTALL)
_OF_VALUES = re.compile(r"SQLSTATE: (?:22|38|39|XX)")
"""Errors of data, of functions and of Spark itself; not of conflicts, connections, full disks and stopped work."""


class UnreadableFileError(BadInputError):
    """Raised when Spark cannot read a file that passed its inspection; a new plan leaves it out, or reads a copy."""


def shown_text(spec: BronzeSpec, error: Exception, text_of: Callable[[Exception], str] = first_line) -> str:
    """Return the text of an error; of a table with restricted columns without what may be a value."""
    return without_values(text_of(error)) if spec.has_restricted_columns else text_of(error)


def named_file(error: Exception) -> str:
    """Return the file of which Spark says that it could not read it; empty if the error names none.

    >>> named_file(RuntimeError("[FAILED_READ_FILE.NO_HINT] Error reading file:///landing/a%20b.parquet. SQLSTATE"))
    '/landing/a%20b.parquet'
    """
    match = _NAMED.search(f"{error} ")
    return match[1] if match else ""


def failing_files(
    error: Exception, files: Sequence[FileFact], read: Read, text_of: Callable[[Exception], str] = first_line
) -> dict[FileFact, str]:
    """Return the files that fail without the others of their batch, each with the cause.

    Args:
        error: what the whole batch raised; it names no file.
        files: the files of the batch.
        read: reads some of them.
        text_of: returns the cause of an error.
    """
    if isinstance(error, AnalysisException):
        groups = defaultdict[tuple[tuple[str, ...], str], list[FileFact]](list)
        for file in files:
            groups[file.columns, file.layout].append(file)
        causes = {key: _failure(read, group, lambda records: records.schema, text_of) for key, group in groups.items()}
        return {file: causes[key] for key, group in groups.items() for file in group if causes[key]}
    if not _OF_VALUES.search(str(error)):
        return {}
    while len(files) > 1:
        half = files[: len(files) // 2]
        files = half if _failure(read, half, _read_all, text_of) else files[len(half) :]
    cause = _failure(read, files, _read_all, text_of)
    return {files[0]: cause} if cause else {}


def _read_all(records: DataFrame) -> None:
    records.write.format("noop").mode("overwrite").save()


def _failure(
    read: Read, files: Sequence[FileFact], use: Callable[[DataFrame], object], text_of: Callable[[Exception], str]
) -> str:
    try:
        use(read(files))
    except Exception as error:  # noqa: BLE001  whatever Spark raises is what is asked for
        return text_of(error)
    return ""

"""Count the records of each landing file, from the data files and the quarantine that its batch committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.job.findings import FileWithoutColumns
from millrace.contracts.job.report import FileRows
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.contracts.spec.record_fields import fields_among, fields_of
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import FileFact, Winner
from millrace.control.log.delta_log import read_commit
from millrace.control.storage.arrow_files import open_for_arrow
from millrace_spark.transforms.records import RESCUED


def rows_of_files(
    paths: Iterable[str], added: Iterable[LakePath], quarantined: Mapping[str, int], dropped: Mapping[str, int]
) -> dict[str, FileRows]:
    """Return landing file -> the counts of its records.

    Args:
        paths: the batch's landing files, relative to the landing root.
        added: the data files that its commit added to the table.
        quarantined: landing file -> its records that the batch quarantined.
        dropped: landing file -> its records that a rule dropped.
    """
    written, rescued = _written_rows(added)
    return {
        path: FileRows(
            read=written[path] + quarantined.get(path, 0) + dropped.get(path, 0),
            written=written[path],
            rescued=rescued[path],
            quarantined=quarantined.get(path, 0),
            dropped=dropped.get(path, 0),
        )
        for path in paths
    }


def lacking_files(
    files: Iterable[FileFact], rows: Mapping[str, FileRows], spec: BronzeSpec
) -> tuple[FileWithoutColumns, ...]:
    """Return the files of a batch that lack fields of declared columns, if their format names columns."""
    fields = fields_of(spec)
    named = ((file, fields_among(file.columns, spec)) for file in files if file.columns)
    lacking = ((file, tuple(dict.fromkeys(fields[n] for n in fields if n not in found))) for file, found in named)
    return tuple(
        FileWithoutColumns(path=file.path, columns=names, rows=rows[file.path].read) for file, names in lacking if names
    )


def added_files(table: LakePath, winner: Winner) -> list[LakePath]:
    """Return the data files that a batch has added to the table."""
    commit = read_commit(table, winner.version)
    return [table / name for name in commit.added] if commit else []


def _written_rows(added: Iterable[LakePath]) -> tuple[Counter[str], Counter[str]]:
    """Return (rows, rows with a value in `_rescued`) of each landing file.

    To save time (a tenth of a large load), the file names are read as a stored dictionary, and `_rescued` is read only
    if the footer says that it has values.
    """
    written, rescued = Counter[str](), Counter[str]()
    for file in added:
        with open_for_arrow(file) as content:
            parquet = pq.ParquetFile(content, read_dictionary=[SOURCE_FILE])
            for group in range(parquet.num_row_groups):
                names = parquet.read_row_group(group, columns=[SOURCE_FILE])[SOURCE_FILE]
                written.update(_counts(names))
                if not is_all_null(parquet.metadata.row_group(group), RESCUED):
                    values = parquet.read_row_group(group, columns=[RESCUED])[RESCUED]
                    rescued.update(_counts(names.filter(pc.is_valid(values))))
    return written, rescued


def is_all_null(group: pq.RowGroupMetaData, column: str) -> bool:
    """Whether the footer says that a column of the row group has only nulls; false if it says nothing."""
    columns = (group.column(index) for index in range(group.num_columns))
    (statistics,) = (chunk.statistics for chunk in columns if chunk.path_in_schema == column)
    return statistics is not None and statistics.has_null_count and bool(statistics.null_count == group.num_rows)


def _counts(names: pa.ChunkedArray) -> dict[str, int]:
    counts = Counter[str]()
    for chunk in names.chunks:
        for count in pc.value_counts(chunk.indices).to_pylist():
            counts[chunk.dictionary[count["values"]].as_py()] += count["counts"]
    return counts

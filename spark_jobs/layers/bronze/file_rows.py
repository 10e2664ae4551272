"""What became of the records of each landing file, read back from what its batch committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.contracts.job.findings import FileWithoutColumns
from include.contracts.job.report import FileRows
from include.contracts.lake_path import LakePath
from include.control.log.batch import FileFact, Winner
from include.control.log.stored_tables import open_table
from include.control.log.table_queries import query, texts
from include.control.storage.arrow_files import open_for_arrow
from spark_jobs.delta_io.landing_reads import SOURCE_FILE
from spark_jobs.transforms.records import RESCUED


def rows_of_files(
    paths: Iterable[str], added: Iterable[LakePath], quarantined: Mapping[str, int], dropped: Mapping[str, int]
) -> dict[str, FileRows]:
    """path -> what became of its records.

    Args:
        paths: the batch's landing files, relative to the landing root.
        added: the data files that its commit added to the table.
        quarantined: landing file -> records of it that the batch quarantined.
        dropped: landing file -> records of it that a rule dropped.
    """
    written, rescued = _written(added)
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
    files: Iterable[FileFact], rows: Mapping[str, FileRows], declared: Collection[str]
) -> tuple[FileWithoutColumns, ...]:
    """The files of a batch that lack declared columns, where their format names columns, and how many rows each has."""
    lacking = ((file, tuple(name for name in declared if name not in file.columns)) for file in files if file.columns)
    found = ((file.path, names) for file, names in lacking if names)
    return tuple(FileWithoutColumns(path=path, columns=names, rows=rows[path].read) for path, names in found)


def quarantined_of_files(quarantine: LakePath, winner: Winner) -> Counter[str]:
    """landing file -> records that a batch quarantined."""
    mine = f"_batch_token = {texts([winner.token])}"
    sql = f"SELECT source, count(*) AS rows FROM stored WHERE {mine} GROUP BY source"
    return Counter({found["source"]: found["rows"] for found in query(open_table(quarantine), sql)})


def _written(added: Iterable[LakePath]) -> tuple[Counter[str], Counter[str]]:
    """(rows, rows with a rescued value) of each landing file.

    The names are read as the dictionary that they are stored by, and what was rescued only where the footer says that
    something was: as texts, both would take a tenth of a large load.
    """
    written, rescued = Counter[str](), Counter[str]()
    for file in added:
        with open_for_arrow(file) as content:
            stored = pq.ParquetFile(content, read_dictionary=[SOURCE_FILE])
            for group in range(stored.num_row_groups):
                names = stored.read_row_group(group, columns=[SOURCE_FILE])[SOURCE_FILE]
                written.update(_counts(names))
                if not all_null(stored.metadata.row_group(group), RESCUED):
                    values = stored.read_row_group(group, columns=[RESCUED])[RESCUED]
                    rescued.update(_counts(names.filter(pc.is_valid(values))))
    return written, rescued


def all_null(group: pq.RowGroupMetaData, column: str) -> bool:
    """Whether the footer says that a column of the group has no value; false where it says nothing."""
    columns = (group.column(index) for index in range(group.num_columns))
    (stated,) = (found.statistics for found in columns if found.path_in_schema == column)
    return stated is not None and stated.has_null_count and bool(stated.null_count == group.num_rows)


def _counts(names: pa.ChunkedArray) -> dict[str, int]:
    found = Counter[str]()
    for chunk in names.chunks:
        for count in pc.value_counts(chunk.indices).to_pylist():
            found[chunk.dictionary[count["values"]].as_py()] += count["counts"]
    return found

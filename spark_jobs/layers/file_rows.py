"""What became of the records of each landing file, read back from what its batch committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from include.contracts.job_report import FileRows
from include.control.batch import Winner
from spark_jobs.delta_io.landing_reads import SOURCE_FILE
from spark_jobs.transforms.records import RESCUED


def rows_of_files(
    paths: Iterable[str], added: Iterable[Path], quarantined: Mapping[str, int], dropped: Mapping[str, int]
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


def quarantined_of_files(quarantine: Path, winner: Winner) -> Counter[str]:
    """landing file -> records that a batch quarantined."""
    batch = [("_stream", "=", winner.intent.stream), ("_batch_seq", "=", winner.batch_seq)]
    return Counter(
        DeltaTable(str(quarantine)).to_pyarrow_table(columns=["source"], filters=batch)["source"].to_pylist()
    )


def _written(added: Iterable[Path]) -> tuple[Counter[str], Counter[str]]:
    """(rows, rows with a rescued value) of each landing file."""
    written, rescued = Counter[str](), Counter[str]()
    for file in added:
        # partitioning=None: a folder such as day=2013-01-01 must not become a column.
        rows = pq.read_table(file, columns=[SOURCE_FILE, RESCUED], partitioning=None)
        written.update(_counts(rows[SOURCE_FILE]))
        rescued.update(_counts(rows[SOURCE_FILE].filter(pc.is_valid(rows[RESCUED]))))
    return written, rescued


def _counts(values: object) -> dict[str, int]:
    return {count["values"]: count["counts"] for count in pc.value_counts(values).to_pylist()}

"""The rows that one batch has put into quarantine, read from the data files of its commit, without Spark.

delta-rs would read the whole log of the quarantine to open it, and then every data file that may have such a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from itertools import takewhile
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millrace.contracts.job.findings import MAX_SAMPLES, RefusedRows, merge_by_reason, without_value
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.expectation import Action
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import read_commit
from millrace.control.log.followed_tables import newest_table
from millrace.control.storage.arrow_files import open_for_arrow
from millrace.errors import ConservationError

_TOKEN = "_batch_token"


def quarantined_by_reason(quarantine: LakePath, winner: Winner, refused: int) -> tuple[RefusedRows, ...]:
    """Return the rows that a batch has put into quarantine; a row with two reasons counts for both.

    Args:
        quarantine: the quarantine of the table.
        winner: the batch.
        refused: how many rows it has refused.

    Raises:
        ConservationError: the quarantine has another number of them.
    """
    counts, samples, found = Counter[str](), dict[str, list[str]](), 0
    for rows in _rows_of_batch(quarantine, winner, "reasons", "row_id"):
        found += rows.num_rows
        of_row = pc.list_parent_indices(rows["reasons"])
        each = pa.table({"reason": pc.list_flatten(rows["reasons"]), "row_id": rows["row_id"].take(of_row)})
        for group in each.group_by("reason").aggregate([("row_id", "list")]).to_pylist():
            reason, ids = group["reason"], group["row_id_list"]
            counts[reason] += len(ids)
            samples[reason] = nsmallest(MAX_SAMPLES, [*samples.get(reason, ()), *ids])
    if found != refused:
        raise ConservationError(
            f"{winner.intent.table}: batch {winner.batch_seq} refused {refused:,} rows; the quarantine has {found:,}",
            "The version is not certified; compare it with its source before anything else.",
        )
    return merge_by_reason(
        RefusedRows(reason=without_value(reason), action=Action.QUARANTINE, rows=rows, samples=tuple(samples[reason]))
        for reason, rows in sorted(counts.items())
    )


def quarantined_of_files(quarantine: LakePath, winner: Winner) -> Counter[str]:
    """Return landing file -> how many of its records a batch has put into quarantine."""
    counts = Counter[str]()
    for rows in _rows_of_batch(quarantine, winner, "source"):
        counts.update({group["values"]: group["counts"] for group in pc.value_counts(rows["source"]).to_pylist()})
    return counts


def _rows_of_batch(quarantine: LakePath, winner: Winner, *columns: str) -> Iterator[pa.Table]:
    """Yield the rows of a batch with some of their columns, a part of a file at a time."""
    for file in _files_of_batch(quarantine, winner):
        with open_for_arrow(file) as content:
            parquet = pq.ParquetFile(content)
            for group in range(parquet.num_row_groups):
                rows = parquet.read_row_group(group, columns=[*columns, _TOKEN])
                yield rows.filter(pc.equal(rows[_TOKEN], winner.token))


def _files_of_batch(quarantine: LakePath, winner: Winner) -> list[LakePath]:
    """Return the data files that the batch has added to the quarantine.

    If its commit was cleaned up, or OPTIMIZE has replaced one of them since, return all data files.
    """
    newest = newest_table(quarantine)
    commits = (read_commit(quarantine, version) for version in range(newest.version, -1, -1))
    remaining = takewhile(lambda commit: commit is not None, commits)
    commit = next((each for each in remaining if each and each.metadata.get("token") == winner.token), None)
    existing = set(map(unquote, newest.files))
    added = set(commit.added) if commit else existing
    return [quarantine / name for name in sorted(added if added <= existing else existing)]

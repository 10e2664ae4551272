"""Which values of a batch fitted no declared column, read back from what it committed. No Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.contracts.job.findings import MAX_SAMPLES, RescuedValues
from include.contracts.lake_path import LakePath
from include.control.log.batch import Winner
from include.control.storage.arrow_files import open_for_arrow
from spark_jobs.layers.bronze.file_rows import all_null
from spark_jobs.transforms.records import RESCUED

_TOKEN = "_batch_token"


def rescued_fields(added: Iterable[LakePath], winner: Winner, kinds: Mapping[str, str]) -> tuple[RescuedValues, ...]:
    """The fields that `_rescued` of a batch's rows holds, by name.

    Args:
        added: the data files that its commit added to the table; where it replaced rows, others' rows are in them, too.
        winner: the batch.
        kinds: declared column -> its type.
    """
    rows, samples = Counter[str](), defaultdict[str, list[str]](list)
    for text, number in _texts(added, winner):
        for field, value in json.loads(text).items():
            rows[field] += number
            if len(samples[field]) < MAX_SAMPLES and value not in samples[field]:
                samples[field].append(value)
    return tuple(
        RescuedValues(field=field, type=kinds.get(field, ""), rows=rows[field], samples=tuple(samples[field]))
        for field in sorted(rows)
    )


def _texts(added: Iterable[LakePath], winner: Winner) -> Iterator[tuple[str, int]]:
    """(what a row has in `_rescued`, how many rows have just that)."""
    for file in added:
        with open_for_arrow(file) as content:
            stored = pq.ParquetFile(content, read_dictionary=[_TOKEN])
            for group in range(stored.num_row_groups):
                if not all_null(stored.metadata.row_group(group), RESCUED):
                    found = stored.read_row_group(group, columns=[RESCUED, _TOKEN])
                    mine = pc.and_(pc.is_valid(found[RESCUED]), pc.equal(found[_TOKEN], pa.scalar(winner.token)))
                    for counted in pc.value_counts(found[RESCUED].filter(mine)):
                        yield counted["values"].as_py(), counted["counts"].as_py()

"""Which spec the batches of a silver table followed that have read each batch of a source last."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import datetime

from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import Winner


def last_reads(
    ledger: Ledger, table: str, table_id: str, source: str, source_id: str, upto: int | None = None
) -> list[tuple[Winner, str]]:
    """Return each batch of a source with the `spec_hash` of the batch of the table that has read it last, or "".

    A batch whose rows a restore has undone has read nothing.

    Args:
        ledger: the ledger.
        table: a silver table.
        table_id: its Delta table id.
        source: the source.
        source_id: the Delta table id of the source.
        upto: the last version of the source that counts; None for the newest.
    """
    loads, batches = ledger.batches(source, source_id, -1, upto), ledger.batches(table, table_id, -1)
    versions, of_interval = [load.version for load in loads], defaultdict[datetime, list[int]](list)
    for at, load in enumerate(loads):
        of_interval[load.intent.interval_start].append(at)
    specs = [""] * len(loads)
    for intent in (batch.intent for batch in batches):
        sources = intent.sources
        if sources.replay or sources.restores is not None or sources.source_ids.get(source) != source_id:
            continue
        after, last = sources.ranges[source]
        first, end = bisect_right(versions, -1 if after is None else after), bisect_right(versions, last)
        again = (at for start in intent.intervals_read_again for at in of_interval[start] if at < end)
        for at in (*range(first, end), *again):
            specs[at] = intent.spec_hash
    return list(zip(loads, specs, strict=True))

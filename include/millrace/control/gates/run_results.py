"""The results that the gates of a run have recorded, and the name of the folder with their Data Docs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice

from millrace.contracts.job.args import CheckedVersion
from millrace.control.gates.gates import Gates, RecordedResult


def results_of(gates: Gates, versions: Iterable[CheckedVersion]) -> list[RecordedResult]:
    """Return the newest result of each version that the gates of a run have checked, if there is one."""
    results = list[RecordedResult]()
    for checked in versions:
        result = gates.result(checked.table, checked.version, checked.suite_hash)
        newest = gates.newest_results(checked.table)
        results += islice((recorded for recorded in newest if recorded.result == result), 1)
    return results


def folder_name(results: Sequence[RecordedResult]) -> str:
    """Return the name of the folder with the pages of these results: other results have another name."""
    texts = sorted(recorded.result.model_dump_json() for recorded in results)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

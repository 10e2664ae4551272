"""The versions of a table, each with the result of its gate."""

from __future__ import annotations

from pathlib import Path

from millrace.control.ledger.resolution import table_id
from millrace.control.ops_tables import OpsTables
from millrace.overview.timeline import timeline
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import judge, load_batch

SPEC = bronze_spec()


def test_a_batch_has_the_result_of_the_version_that_was_checked_with_it(tmp_path: Path) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    for checks in ([1], [], [2, 3], []):
        version = load_batch(tmp_path, SPEC).version
        if checks:
            judge(tmp_path, SPEC, version, batches=tuple(f"main/{number}" for number in checks), passed=version != 1)

    def results(upto: int | None = None, limit: int = 50) -> list[tuple[int, int | None, bool | None]]:
        entries = timeline(SPEC.table, table_id(ops.paths.table(SPEC.table)), ops, upto, limit)
        of_entries = ((entry.version, entry.result) for entry in entries)
        return [(version, result and result.version, result and result.passed) for version, result in of_entries]

    assert results() == [(4, None, None), (3, 3, True), (2, 3, True), (1, 1, False)]
    assert results(upto=2, limit=1) == [(2, 3, True)]

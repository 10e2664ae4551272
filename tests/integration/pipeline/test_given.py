"""What `given` writes without Spark is what the jobs write: log, rows, statistics, ledger, state and certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import read_commit
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS = {
    1: [order(1, 5, 8), order(2, 7, 8), order(3, None, 8)],
    2: [order(1, 6, 9), order(4, 2, 9, of_day=2), order(2, 1, 9, of_day=2)],
}
RANDOM = ("_batch_token", "_ingested_at", "_source_file", "_source_hash", "_content_hash")
"""Columns that differ between two runs of the jobs as well, and hashes, which no test reads."""

SAME = {
    "rows", "version", "certified_version", "batch_seq", "stream", "outcome", "table_rows", "certified_moved"
}  # fmt: skip
"""What is the same in both reports of a batch."""


def test_it_is_what_the_jobs_write(lakehouse: Lakehouse, tmp_path: Path) -> None:
    by_given = Lakehouse(tmp_path / "given")
    by_given.specs(bronze_document(), silver_document())
    lakehouse.deliver(1, "a.json", DAYS[1])
    made = lakehouse.run_all(1, BRONZE, SILVER)
    # The next batch of bronze would be of the same kind.
    made += [given(lakehouse, BRONZE, DAYS[2], 2), lakehouse.run(SILVER, 2)]
    batches = [(table, number) for number in DAYS for table in (BRONZE, SILVER)]
    for (table, number), report in zip(batches, made, strict=True):
        again = given(by_given, table, DAYS[number], number)
        assert again.model_dump(include=SAME) == report.model_dump(include=SAME)
    for table in (BRONZE, SILVER):
        for facts in (definition, commits, statistics, rows_of, ledger, certificate):
            expected = facts(lakehouse.paths, table)
            assert expected
            assert facts(by_given.paths, table) == expected, (table, facts.__name__)


def definition(paths: LakehousePaths, table: str) -> Any:
    delta = DeltaTable(str(paths.table(table)))
    return delta.schema().to_json(), dict(delta.metadata().configuration), delta.metadata().partition_columns


def commits(paths: LakehousePaths, table: str) -> Any:
    """Of each commit the actions, its txn and what its metadata says, without tokens, ids and times."""
    found = []
    for version in (1, 2):
        commit = read_commit(paths.table(table), version)
        assert commit
        log = Path(str(paths.table(table))) / f"_delta_log/{version:020d}.json"
        kinds = {kind for line in log.read_text().splitlines() for kind in json.loads(line)}
        random = ("token", "table_id", "sources", "planned_at")
        metadata = {key: value for key, value in commit.metadata.items() if key not in random}
        found.append((kinds, commit.txns, metadata, commit.operation, commit.changed_rows))
    return found


def statistics(paths: LakehousePaths, table: str) -> Any:
    added = DeltaTable(str(paths.table(table))).get_add_actions(flatten=True)
    names = [name for name in added.schema.names if name.startswith(("num_records", "min", "max", "null_count"))]
    rows = [{name: row[name] for name in names if row[name] is not None} for row in pa.table(added).to_pylist()]
    return sorted(({k: v for k, v in row.items() if "_source_file" not in k} for row in rows), key=repr)


def rows_of(paths: LakehousePaths, table: str) -> Any:
    rows = DeltaTable(str(paths.table(table))).to_pyarrow_table().to_pylist()
    return sorted(({name: value for name, value in row.items() if name not in RANDOM} for row in rows), key=repr)


def ledger(paths: LakehousePaths, table: str) -> Any:
    events = DeltaTable(str(paths.ops("batches"))).to_pyarrow_table().to_pylist()
    random = ("recorded_at", "token", "table_id", "intent")
    return sorted(
        ({k: v for k, v in event.items() if k not in random} for event in events if event["table"] == table), key=repr
    )


def certificate(paths: LakehousePaths, table: str) -> Any:
    verdicts = Gates(paths).verdicts(table)
    assert verdicts
    return [result.model_dump(exclude={"table_id"}) for result in verdicts.judged]

"""Any sequence of batches, refusals and restores: rows, files, positions and certificates are those of the version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import BatchSources, FileFact, Stream
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.restoring import Restore
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, judge, load_batch, optimize

SPEC = bronze_spec()
TABLE = SPEC.table
STEPS = ("load", "load", "load and refuse", "optimize", "restore", "restore for good")


@dataclass(frozen=True)
class Known:
    """What is known of a version: file -> content, of files whose rows it has, and of those that count as loaded."""

    rows: int
    files: frozenset[str]
    counted: frozenset[str]
    position: int


@pytest.mark.parametrize("seed", range(6))
def test_a_restored_version_is_known_as_it_was(tmp_path: Path, seed: int) -> None:
    root, ops, chance = tmp_path, OpsTables(LakehousePaths(tmp_path)), Random(seed)
    path, seen = ops.paths.table(TABLE), dict[int, Known]()
    now = Known(0, frozenset(), frozenset(), 0)
    passed = list[int]()
    for number, step in enumerate(["load", "load", *chance.choices(STEPS, k=8)]):
        newest = latest_version(path)
        if step.startswith("load"):
            file = f"{number}.json"
            sources = BatchSources(files=1, offsets={"orders": {0: (now.position, number + 1)}})
            facts = (FileFact(file, 1, 1, f"content {number}"),)
            winner = load_batch(root, SPEC, rows=number + 1, sources=sources, files=facts)
            judge(root, SPEC, winner.version, passed=not step.endswith("refuse"))
            now = Known(now.rows + number + 1, now.files | {file}, now.counted | {file}, number + 1)
        elif step == "optimize":
            if len(DeltaTable(str(path)).file_uris()) < 2:
                continue
            optimize(path)
        else:
            targets = [version for version in passed if version < newest]
            if not targets:
                continue
            target, for_good = chance.choice(targets), step.endswith("good")
            Restore(SPEC, target, newest, day(), "run", no_reload=for_good).run(ops)
            kept = now.counted | seen[target].counted if for_good else seen[target].counted
            position = now.position if for_good else seen[target].position
            now = Known(seen[target].rows, seen[target].files, kept, position)
        newest = latest_version(path)
        seen[newest] = now
        certified = ops.gates.certified(TABLE)
        passed += [newest] if certified == newest else []
        assert (certified == newest) is (step != "load and refuse" and (step != "optimize" or newest in passed))
        check(root, now)


def check(root: Path, now: Known) -> None:
    """Check a table and its ledger, read anew."""
    ledger, path = Ledger(LakehousePaths(root)), LakehousePaths(root).table(TABLE)
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == now.rows
    position = resolve(path, Stream(TABLE), ledger)
    of_table = TABLE, table_id(path)
    every = {f"{number}.json" for number in range(20)}
    assert {*ledger.loaded_files(*of_table).last_of(every)} == now.counted
    loads = [batch.intent for batch in ledger.batches(*of_table, -1) if batch.intent.sources.files]
    assert {file.path for intent in loads for file in ledger.files_of(intent)} == now.files
    assert position.last is not None
    assert position.last.intent.sources.offsets["orders"][0][1] == now.position

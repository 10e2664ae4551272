"""Writers without a lease race for the same files and are killed anywhere: what each scheme loses or doubles."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from embedded.clone import CLONE
from tests.support.ledger.protocol_race import FILES, TABLES, table_in

pytestmark = pytest.mark.slow


def run_races(scheme: str, races: int, folder: Path) -> Counter[str]:
    """Run races in a process of their own, since they fork; return deaths, finished races, lost and doubled rows."""
    lakes = [folder / str(number) for number in range(races)]
    tables = [str(table_in(lake, table)) for lake in lakes for table in TABLES]
    for table in tables:
        DeltaTable.create(table, pa.schema([("source", pa.string())]))
    command = [sys.executable, "-m", "tests.support.ledger.protocol_race", scheme, *map(str, lakes)]
    ended = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr[-2000:]
    score = Counter[str](json.loads(ended.stdout))
    for table in tables:
        rows = Counter(DeltaTable(table).to_pyarrow_table()["source"].to_pylist())
        score["lost"] += sum(rows[name] == 0 for name in FILES)
        score["doubled"] += sum(rows[name] > 1 for name in FILES)
    return score


def test_the_protocol_loses_and_doubles_nothing_whatever_dies_when(tmp_path: Path) -> None:
    score = run_races("millrace", 2, tmp_path)
    assert score["deaths"] >= 4, "too few writers died for the race to mean anything"
    assert score["finished"] == 2
    assert (score["lost"], score["doubled"]) == (0, 0)


def test_the_race_catches_a_scheme_that_trusts_the_ledger(tmp_path: Path) -> None:
    assert any(run_races("trust the ledger", 1, tmp_path / str(attempt))["lost"] for attempt in range(6))

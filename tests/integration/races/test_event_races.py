"""The race of `tests/unit/millrace/control/ledger/test_ops_table.py`, with more processes and for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.servers.s3 import s3_bucket
from millrace.contracts.lake_path import S3Path
from tests.support.ledger.event_race import race_and_count

PROCESSES = 4


@pytest.mark.faults
def test_on_a_disk(tmp_path: Path) -> None:
    race_and_count(tmp_path / "ops" / "events", PROCESSES, rounds=40)


@pytest.mark.faults
def test_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_bucket("events") as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        race_and_count(S3Path("s3://events/ops/events"), PROCESSES, rounds=15)

"""Several processes append to an `ops` table, compact it and read it: each event is there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.servers.s3 import s3_bucket
from include.contracts.lake_path import S3Path
from tests.support.ledger.event_race import race_and_count

PROCESSES, ROUNDS = 3, 6


def test_each_event_is_once_in_a_folder(tmp_path: Path) -> None:
    race_and_count(tmp_path / "a lake, 100% übrig" / "ops" / "events", PROCESSES, ROUNDS)


def test_each_event_is_once_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_bucket("events") as bucket:
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        race_and_count(S3Path("s3://events/ops/events"), PROCESSES, ROUNDS)

"""`lakehouse health` and `maintain --plan`: what is known of tables' storage, without Spark and without a write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from benchmarks import aged_lake
from millrace.catalog import load_catalog
from millrace.control.log import followed_tables
from millrace.control.maintenance.file_layout import LEAST_SMALL_FILES
from millrace.control.maintenance.maintained import Rewritten, keep_maintained
from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.delta_tables import commit_file, file_contents, judge, load_batch

BRONZE, SILVER = "bronze.orders", "silver.orders"


def test_it_shows_what_maintenance_would_do_and_why_and_writes_nothing(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    specs = load_catalog(settings.tables)
    for _ in range(LEAST_SMALL_FILES):
        load_batch(settings.root, specs.spec(BRONZE))
    judge(settings.root, specs.spec(BRONZE), LEAST_SMALL_FILES)
    stray = settings.root / "bronze" / "orders" / "stray.parquet"
    stray.write_bytes(b"12345")
    lake = file_contents(settings.root)
    whole = lakehouse("health")
    assert whole.exit_code == 0, whole.output
    assert f"{BRONZE}  to be maintained  8  8" in _columns(whole.stdout)
    assert f"{SILVER}: not built yet" in whole.stdout
    one = " ".join(lakehouse("health", BRONZE).stdout.split())
    assert "small files 8 files, " in one
    assert "not alone in a partition, and below half of 16.8 MB" in one
    assert "old files, kept 1 file, 5 B, the first until" in one
    assert f"{BRONZE} bin-pack" in one
    assert "readers open more and more files" in one
    [planned] = json.loads(lakehouse("maintain", "--plan", "--json", "--table", BRONZE).stdout)
    assert (planned["table"], planned["step"], planned["seconds"]) == (BRONZE, "bin-pack", None)
    assert planned["reason"] == "8 of 8 files could be joined (OPTIMIZE needs 8)"
    assert file_contents(settings.root) == lake
    [measured] = json.loads(lakehouse("health", BRONZE, "--json").stdout)
    assert measured["health"]["layout"]["small_bytes"] == planned["size"] > 0
    assert measured["health"]["log"]["expired"] == 0, "a number, not each file"
    keep_maintained(OpsTables(settings.paths), BRONZE, rewritten=Rewritten(planned["size"] // 2, 3.0))
    [again] = json.loads(lakehouse("maintain", "--plan", "--json", "--table", BRONZE).stdout)
    assert round(again["seconds"]) == 6, "twice the bytes of the last time"
    keep_maintained(OpsTables(settings.paths), BRONZE, rewritten=Rewritten(planned["size"] // 20, 3.0))
    [unknown] = json.loads(lakehouse("maintain", "--plan", "--json", "--table", BRONZE).stdout)
    assert unknown["seconds"] is None, "twenty times the bytes of the last time"
    assert lakehouse("maintain", "--json").exit_code == ExitCode.WRONG_USAGE


def test_a_deletion_that_a_person_has_to_allow_is_shown_and_not_done(lakehouse: Lakehouse, settings: Settings) -> None:
    write_specs(settings.tables, bronze_document(maintenance={"vacuum": {"retain": "24 hours"}}))
    load_batch(settings.root, load_catalog(settings.tables).spec(BRONZE))
    path = Path(str(settings.paths.table(BRONZE)))
    DeltaTable(str(path)).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 24 hours"})
    (path / "stray.parquet").write_bytes(b"12345")
    os.utime(path / "stray.parquet", (0, 0))
    assert "vacuum, if a person allows it" in " ".join(
        lakehouse("maintain", "--plan", "--table", BRONZE).stdout.split()
    )
    answer = lakehouse("maintain", "--table", BRONZE)
    assert answer.exit_code == 0, "no Spark is started"
    assert "bronze.orders: vacuum: 5 B: no version of the last 1 day needs 1 file; the oldest that" in answer.stdout
    assert "A person has to allow this (--allow-deletes)" in answer.stdout
    assert lakehouse("maintain", "--table", BRONZE, "--allow-deletes").exit_code == ExitCode.SPARK_UNAVAILABLE


def test_maintain_starts_no_spark_where_nothing_is_to_do_and_a_torn_log_stops_no_other_table(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    specs = load_catalog(settings.tables)
    load_batch(settings.root, specs.spec(BRONZE))
    answer = lakehouse("maintain", "--table", BRONZE)
    assert (answer.exit_code, answer.stdout) == (
        0, f"{BRONZE}: nothing to do: 0 of 1 file could be joined (OPTIMIZE needs 8)\n",
    )  # fmt: skip
    write_specs(settings.tables, bronze_document("bronze.planes"))
    planes = load_catalog(settings.tables).spec("bronze.planes")
    load_batch(settings.root, planes)
    commit_file(Path(settings.paths.table("bronze.planes")), 1).write_text("")
    torn = lakehouse("health")
    assert torn.exit_code == ExitCode.INCONSISTENT
    assert "planes" in torn.stderr
    assert f"{BRONZE}  in order" in _columns(torn.stdout)


def test_each_table_is_opened_once_however_many_there_are(
    lakehouse: Lakehouse, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_tables, "_MAX_TABLES", 4)
    aged_lake.make(settings.root.parent, 2, chains=3)
    opened, open_table = list[str](), DeltaTable.__init__

    def opening(delta: DeltaTable, path: str, **options: Any) -> None:
        opened.append(path)
        open_table(delta, path, **options)

    monkeypatch.setattr(DeltaTable, "__init__", opening)
    measured = json.loads(lakehouse("health", "--json").stdout)
    tables = list(load_catalog(settings.tables).specs)
    assert len(tables) > 9
    assert [each["table"] for each in measured] == tables, "in build order"
    assert sorted(opened) == sorted(str(settings.paths.table(table)) for table in tables)


def _columns(text: str) -> str:
    return "\n".join("  ".join(part.strip() for part in line.split("  ") if part.strip()) for line in text.split("\n"))

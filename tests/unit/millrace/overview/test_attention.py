"""What needs a person: files that no run tries again, and a table whose maintenance does not run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from millrace.control.gates.gates import Gates
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact
from millrace.control.maintenance.file_layout import FILES_PER_TABLE
from millrace.overview.attention import Attention, Remedy, Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.overview.tables.table_overview import Condition, TableOverview
from millrace.paths import LakehousePaths
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.documents.specs import bronze_document, bronze_spec, write_specs
from tests.support.ledger.delta_tables import day, load_batch
from tests.support.ledger.gate_results import verdict

SPEC = bronze_spec()
NOW = datetime.now(UTC)


def overview(root: Path) -> TableOverview:
    write_specs(root / "specs", bronze_document())
    return LakehouseReader(LakehousePaths(root), root / "specs").read_table(SPEC.table, NOW, no_failed_tasks)


def needed(root: Path) -> list[Attention]:
    return attention_needed([overview(root)], NOW)


def test_a_file_needs_a_person_after_its_last_attempt(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC)
    paths = LakehousePaths(tmp_path)
    files = [FileFact(path=path, size=9, mtime_ns=1, checksum="aa", defect=EVIL) for path in ("b.json", EVIL)]
    for attempt in range(3):
        assert needed(tmp_path) == [], f"after {attempt} attempts"
        Ledger(paths).record_files(FileEvent.FAILED, SPEC.table, table_id(paths.table(SPEC.table)), day(), files)
    [item] = needed(tmp_path)
    assert (item.kind, item.action) == (Trouble.GIVEN_UP, Remedy.DELIVER)
    assert item.cause == f"{EVIL} was given up after 3 attempts, and 1 more file"
    assert set(item.subjects) == {EVIL, "b.json"}


def test_rows_that_readers_use_and_changed_rules_refuse_need_a_person(tmp_path: Path) -> None:
    version = load_batch(tmp_path, SPEC).version
    gates, of_table = Gates(LakehousePaths(tmp_path)), table_id(LakehousePaths(tmp_path).table(SPEC.table))

    def judge(passed: bool, suite_hash: str) -> None:
        result = verdict(of_table, version, passed=passed, suite_hash=suite_hash)
        gates.record(result.model_copy(update={"table": SPEC.table}))

    judge(passed=True, suite_hash="the rules of before")
    judge(passed=False, suite_hash="rules that were taken back")
    assert needed(tmp_path) == []
    judge(passed=False, suite_hash=SPEC.suite_hash)
    [item] = needed(tmp_path)
    assert (item.kind, item.action, item.fields) == (Trouble.REFUSED, Remedy.OVERRIDE, {"version": version})
    assert item.cause.startswith("readers use its rows, which its rules refuse since these were changed: ")
    assert overview(tmp_path).condition is Condition.REFUSED
    judge(passed=True, suite_hash=SPEC.suite_hash)
    assert needed(tmp_path) == []


def test_only_far_too_many_files_need_a_person(tmp_path: Path) -> None:
    load_batch(tmp_path, SPEC)
    table = overview(tmp_path)
    for files, kinds in ((FILES_PER_TABLE + 1, []), (FILES_PER_TABLE + 2, [Trouble.HEALTH])):
        many = replace(table, measures=table.measures.model_copy(update={"files": files}))
        assert [item.kind for item in attention_needed([many], NOW)] == kinds

"""No page shows a value of a row to somebody who may only view assets, wherever the ledger has such a value."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lakehouse_airflow.ui.links import URL_PREFIX, table_path
from lakehouse_airflow.ui.web_app import app
from millrace.contracts.job.report import CheckResult
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.airflow.shown_page import show
from tests.support.documents.specs import bronze_document, bronze_spec, write_specs
from tests.support.ledger.delta_tables import day, judge, load_batch
from tests.support.ledger.quarantine_rows import quarantine, refused

SALARY, SHOWN_SALARY, NAME = 987654, "987,654", "Ada Lovelace"
"""Values of a row, and how a page writes the number."""

SECRET = "9988 7766"
"""A value of a column that is restricted in one test."""

SPEC = bronze_spec()
QUARANTINE = table_path(SPEC.table, "quarantine")
ROW = f"{QUARANTINE}?row=r70"
TABS = ("", "overview", "versions", "quality", "files", "quarantine", "storage", "lineage", "spec")


@pytest.fixture(scope="module", autouse=True)
def lakehouse(shown_lakehouse: None) -> None:
    """Values of rows in each part of the ledger that may have them."""
    root = Settings().root
    paths = LakehousePaths(root)
    for _ in range(2):
        batch = load_batch(root, SPEC)
        checks = [
            check("expect_column_max_to_be_between(salary)", observed=SALARY),
            check("expect_column_mean_to_be_between(salary)", observed=float(SALARY)),
            check("expect_column_sum_to_be_between(salary)", observed={"own": SALARY, "source": SALARY}),
            check("expect_column_distribution_to_be_stable(name)", observed={"psi": 0.5, "changed_most": NAME}),
            check("expect_column_values_to_be_in_set(name)", unexpected_rows=3, samples=(NAME,)),
            check("expect_column_values_to_be_unique(id)", unexpected_rows=2, severity="info"),
            check("expect_column_to_exist(name)", error=f"the value {NAME} cannot be cast"),
            check("expect_table_row_count_to_equal()", observed=41),
        ]
        why = f"{SPEC.table} observed {SALARY}\nFix it."
        judge(root, SPEC, batch.version, passed=False, checks=tuple(checks), refused=why)
    headless = FileFact("orders/no header.csv", 1, 1, "sum", defect=f"has no column id; its columns are {NAME}")
    for _ in range(3):
        Ledger(paths).record_files(FileEvent.FAILED, SPEC.table, batch.intent.table_id, day(4), [headless])
    record = f'{{"name": "{NAME}", "salary": {SALARY}}}'
    reason = f"value does not fit its type: salary is no int: {NAME}"
    quarantine(paths, SPEC.table, refused(70, reason, record=record, received=record))
    deletes = Deletes(SPEC.table, "", day().start, "bronze.x", "", 99, 3, 4, (f"name={NAME}",), "it lacks them")
    DeleteRecords(paths).record_asked(deletes, "run-1")


def check(rule: str, **more: object) -> CheckResult:
    return CheckResult.model_validate({"rule": rule, "action": "fail", "passed": False, **more})


def pages() -> list[str]:
    """Every route, and each tab of the table with what an address can ask for."""
    place = defaultdict(lambda: "orders", table=SPEC.table, dag_id="shop", tab="overview")
    routes = [URL_PREFIX + route.path.replace(":path", "").format_map(place) for route in app.routes]
    tabs = [table_path(SPEC.table, tab) for tab in TABS]
    return [*routes, *tabs, ROW, f"{QUARANTINE}?reason=no&status=waiting"]


def values_in(page: str) -> set[str]:
    return {value for value in (str(SALARY), SHOWN_SALARY, NAME) if value in page}


def test_who_may_only_view_assets_sees_counts_and_no_value_of_a_row(server: TestClient) -> None:
    texts = {path: server.get(path, headers=login(server, "ann")).text for path in pages()}
    assert {path: values_in(text) for path, text in texts.items()} == {path: set() for path in texts}
    quality, list_of_rows, row = (texts[path] for path in (table_path(SPEC.table, "quality"), QUARANTINE, ROW))
    for text in (quality, list_of_rows, row):
        assert "that needs the right to edit, or by a setting to read the task logs of, the DAG shop" in " ".join(
            text.split()
        )
        assert "?row=r" not in text
    assert "5 rows wait in quarantine" in " ".join(row.split())
    assert "3 rows fail" in quality
    assert ">41<" in quality, "a count is no value of a row"


@pytest.mark.parametrize(("user", "setting"), [("bob", "editors"), ("ann", "log_readers")])
def test_who_may_edit_the_dag_or_by_a_setting_read_its_logs_sees_them(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, user: str, setting: str
) -> None:
    monkeypatch.setenv("LAKEHOUSE_ROW_VALUES_FOR", setting)
    texts = {tab: server.get(table_path(SPEC.table, tab), headers=login(server, user)).text for tab in TABS}
    seen = {tab: values_in(text) for tab, text in texts.items()}
    assert {tab for tab, values in seen.items() if values} == {"versions", "quality", "files", "quarantine"}
    assert seen["quality"] >= {SHOWN_SALARY, NAME}
    quality = " ".join(texts["quality"].split())
    assert "2 rows fail; none of them was kept as a sample" in quality, "no rule about the whole table"
    assert quality.count("<small>severity ") == 1, "the others are as severe as their action says"


def test_nobody_sees_a_restricted_column_or_finds_its_values_by_a_search(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hidden = {**SPEC.model_dump(mode="json", by_alias=True)["columns"], "name": {}}
    hidden["salary"] = {"type": "int", "classification": "restricted"}
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(write_specs(tmp_path, bronze_document(columns=hidden))))
    record = f'{{"name": "{NAME}", "salary": "{SECRET}"}}'
    reason = f"value does not fit its type: salary is no int: {SECRET}"
    received = json.dumps({"name": NAME, "_rescued": json.dumps({"salary": SECRET})})
    rows = refused(71, reason, record=record, received=record), refused(72, reason, received=received)
    quarantine(LakehousePaths(Settings().root), SPEC.table, *rows)
    assert "fits no column: (restricted)" in show(server, QUARANTINE).row("r72")
    pages = [show(server, path).words for path in (QUARANTINE, f"{QUARANTINE}?row=r71")]
    for page in pages:
        assert NAME in page, "a neighbour is shown"
        assert "salary is no int: (restricted)" in page
        assert SECRET not in page
    columns = show(server, table_path(SPEC.table)).rows
    is_marked = {row[0]: "restricted" in row for row in columns if row and row[0] in hidden}
    assert is_marked == {name: name == "salary" for name in hidden}
    found = show(server, f"{QUARANTINE}?reason={SECRET[:4]}").words
    assert "0 rows" in found
    assert "0 rows" not in show(server, f"{QUARANTINE}?reason=salary").words

"""The Data Docs of a run are built once for what its gates have recorded, and anew when that changes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.contracts.job.args import CheckedVersion, DataDocsArgs
from include.contracts.job.report import CheckResult
from include.control.gates.gates import Gates
from include.control.gates.result import GateResult, Override
from include.errors import NotReadyError
from include.paths import LakehousePaths, RunPaths
from include.settings import PROJECT
from spark_jobs.jobs.data_docs import build
from tests.support.ledger.delta_tables import append, clean_log, create_table

TABLES = ("silver.orders", "gold.revenue")
RUN = "scheduled__2013-01-05T00:00:00+00:00"


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """Version 1 of two tables was judged: one was refused, one passed."""
    paths = LakehousePaths(tmp_path / "lake house")
    for table, passed in zip(TABLES, (False, True), strict=True):
        table_id = create_table(paths.table(table))
        version = append(paths.table(table), rows=4)
        check = CheckResult(
            rule="expect_column_values_to_be_unique(n)",
            action="fail",
            passed=passed,
            unexpected_rows=None if passed else 1,
        )
        named = {"table": table, "table_id": table_id, "version": version, "suite_hash": "rules"}
        Gates(paths).record(GateResult(**named, passed=passed, checks=(check,)))
    return paths


@pytest.fixture
def args(paths: LakehousePaths, tmp_path: Path) -> DataDocsArgs:
    judged = tuple(CheckedVersion(table=table, version=1, suite_hash="rules") for table in TABLES)
    return DataDocsArgs(
        root=paths.root, folder=RunPaths(tmp_path).data_docs / "dag=a b" / f"run={RUN}", run_id=RUN, versions=judged
    )


def test_a_second_build_returns_the_same_pages_without_great_expectations(args: DataDocsArgs) -> None:
    name = build(args)
    code = (
        "import sys; from spark_jobs.jobs.data_docs import build, DataDocsArgs\n"
        "print(build(DataDocsArgs.from_argv(sys.argv[1:])))\n"
        "assert 'great_expectations' not in sys.modules and 'pyspark' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", code, *args.to_argv()]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout.strip()) == (0, name), again.stderr


def test_an_override_makes_other_pages_and_removes_the_old_pages(args: DataDocsArgs, paths: LakehousePaths) -> None:
    unknown = CheckedVersion(table=TABLES[0], version=1, suite_hash="other rules")
    with pytest.raises(NotReadyError, match="no result of its gates is recorded"):
        build(args.model_copy(update={"versions": (unknown,)}))
    before = build(args)
    pages = args.folder / before
    assert {page.name for page in pages.glob("*.html")} == {"index.html", *(f"{table}.html" for table in TABLES)}
    assert "25%" in (pages / "silver.orders.html").read_text(), "one of four rows"
    (args.folder / "partial-of-one-who-was-killed").mkdir()
    refused = Gates(paths).result(TABLES[0], 1, "rules")
    assert refused is not None
    said = Override(by="ann", reason="a holiday", run_id="manual__1", at=datetime(2013, 1, 5, tzinfo=UTC))
    checks = tuple(check.model_copy(update={"overridden": True}) for check in refused.checks)
    Gates(paths).record_override(refused.model_copy(update={"passed": True, "override": said, "checks": checks}))
    after = build(args)
    assert after != before
    assert [folder.name for folder in args.folder.glob("*/")] == [after]
    assert "overridden by ann" in (args.folder / after / "silver.orders.html").read_text()


def test_a_version_whose_log_is_gone_has_a_page_without_shares(args: DataDocsArgs, paths: LakehousePaths) -> None:
    for _ in range(2):
        append(paths.table(TABLES[0]))
    clean_log(paths.table(TABLES[0]), below=3)
    page = args.folder / build(args) / "silver.orders.html"
    assert "1 unexpected rows" in page.read_text()

"""The web pages: only files of the run's own folder are served, and they can run and load nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import HTTPException
from filelock import FileLock

from lakehouse_airflow.ui import data_docs
from lakehouse_airflow.ui.data_docs import open_page, read_page, run_folder
from millrace.contracts.job.args import CheckedVersion
from millrace.control.gates.gates import Gates, folder_name
from millrace.control.gates.result import GateResult
from millrace.control.ledger.resolution import table_id
from millrace.paths import LakehousePaths, RunPaths
from millrace.settings import Settings
from tests.support.ledger.delta_tables import create_table

DAG, RUN, NAME = "shop", "manual__2013-01-05T00:00:00+00:00", "0123456789abcdef"


def session_with(*versions: CheckedVersion) -> Any:
    """Return a database session in which the gates of the run have checked `versions`."""
    rows = [SimpleNamespace(value=json.dumps(version.model_dump())) for version in versions]
    return SimpleNamespace(execute=lambda query: rows, close=lambda: None)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages of one run, and files that must not be served."""
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path))
    site = run_folder(DAG, RUN, Settings().run_paths) / NAME
    site.mkdir(parents=True)
    for file in (site / "index.html", site / "a.json", site.parent / "lock.html", tmp_path / "secret.html"):
        file.write_text("text")
    (site / "link.html").symlink_to(tmp_path / "secret.html")
    return site


def test_a_page_is_served_so_that_it_can_run_and_load_nothing(site: Path) -> None:
    answer = read_page(DAG, RUN, NAME, "index.html", session_with())
    assert Path(answer.path) == site / "index.html"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "page"),
    [
        (NAME, "other.html"), (NAME, "a.json"), (NAME, "link.html"), (NAME, ".."), (NAME, "../lock.html"),
        (NAME, "../../../../../../secret.html"), ("..", "index.html"), (".", "lock.html"), ("", "lock.html"),
        ("../..", "secret.html"), ("/", "etc/passwd.html"), (NAME, "/etc/passwd"), (NAME, ""), (NAME, "x\\..\\y.html"),
    ],
)  # fmt: skip
def test_nothing_else_is_served(name: str, page: str) -> None:
    with pytest.raises(HTTPException) as refused:
        read_page(DAG, RUN, name, page, session_with())
    assert refused.value.status_code == 404


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run's folder on a machine on which none of its pages have been built."""
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path))
    monkeypatch.setattr(data_docs, "BUILDER", "tests.support.airflow.page_builder")
    return run_folder(DAG, RUN, Settings().run_paths)


def test_another_server_builds_the_pages_too_without_its_secrets_and_none_of_earlier_results(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_DB", "SPARK_CONNECT_AUTHENTICATE_TOKEN", "GITHUB_TOKEN")
    for name in (*secrets, "AWS_SECRET_ACCESS_KEY", "LAKEHOUSE_KAFKA"):
        monkeypatch.setenv(name, "{}")
    session = session_with(CheckedVersion(table="bronze.orders", version=1, suite_hash="a"))
    answer = read_page(DAG, RUN, NAME, "bronze.orders.html", session)
    assert Path(answer.path) == built / NAME / "bronze.orders.html"
    for name, page in ((NAME, "bronze.bills.html"), ("fedcba9876543210", "bronze.orders.html")):
        with pytest.raises(HTTPException):
            read_page(DAG, RUN, name, page, session)
    environment = json.loads(Path(answer.path).read_text())
    assert {"AWS_SECRET_ACCESS_KEY", "PATH"} <= set(environment)
    assert set(environment).isdisjoint({*secrets, "LAKEHOUSE_KAFKA"})


def test_pages_are_built_once_and_one_run_at_a_time(built: Path, tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    create_table(paths.table("silver.a"))
    own_id = table_id(paths.table("silver.a"))
    Gates(paths).record(GateResult(table="silver.a", table_id=own_id, version=0, suite_hash="s", passed=True))
    session = session_with(CheckedVersion(table="silver.a", version=0, suite_hash="s"))
    with FileLock(built.parent.parent / "builder.lock"), pytest.raises(HTTPException) as refused:
        open_page(DAG, RUN, "silver.a", session)
    assert (refused.value.status_code, refused.value.headers) == (503, {"Retry-After": "5", "Refresh": "5"})
    [result] = Gates(paths).results("silver.a")
    (built / folder_name([result])).mkdir(parents=True)
    answer = open_page(DAG, RUN, "silver.a", session)
    assert answer.headers["location"] == f"pages/{folder_name([result])}/silver.a.html", (
        "no builder, which makes another"
    )


@pytest.mark.usefixtures("built")
def test_a_builder_that_does_not_end_in_time_is_answered_with_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_docs, "BUILDER", "tests.support.airflow.slow_page_builder")
    monkeypatch.setattr(data_docs, "TIMEOUT_S", 5)
    with pytest.raises(HTTPException, match="could not be built: reads the results") as failed:
        read_page(DAG, RUN, NAME, "a.b.html", session_with(CheckedVersion(table="a.b", version=1, suite_hash="a")))
    assert failed.value.status_code == 500


@pytest.mark.parametrize("evil", ["..", ".", "../../../..", "/etc"])
def test_no_name_of_a_dag_or_a_run_leads_out(evil: str, tmp_path: Path) -> None:
    below = tmp_path / "data_docs"
    for folder in (run_folder(evil, RUN, RunPaths(tmp_path)), run_folder(DAG, evil, RunPaths(tmp_path))):
        assert folder.resolve() != below
        assert below in folder.resolve().parents

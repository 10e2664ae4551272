"""Parsing dags/ is light, quiet and the same every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from include.settings import PROJECT
from tests.support.airflow.dag_parse import parse_dags

DAG_IDS = {
    "column_approvals",
    "delete_approval",
    "flights",
    "gate_override",
    "quarantine_replay",
    "table_maintenance",
    "table_rebuild",
}
LONGEST_DAG_FILE = 30


@pytest.fixture(scope="module")
def parse(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    said = parse_dags(tmp_path_factory.mktemp("airflow"))
    assert said["errors"] == {}
    assert set(said["dags"]) == DAG_IDS
    return said


def test_parsing_loads_no_engine(parse: dict[str, Any]) -> None:
    assert parse["heavy"] == []


def test_parsing_calls_nobody(parse: dict[str, Any]) -> None:
    assert parse["outside"] == []


def test_two_parses_are_byte_identical(parse: dict[str, Any], tmp_path: Path) -> None:
    again = parse_dags(tmp_path / "other", PYTHONHASHSEED="12345", TZ="Asia/Tokyo")
    assert as_airflow_compares(again) == as_airflow_compares(parse)


def as_airflow_compares(said: dict[str, Any]) -> bytes:
    """Airflow's serialiser walks over sets of field names; the hash by which it tells versions apart sorts keys."""
    return json.dumps(said["dags"], sort_keys=True).encode()


def test_the_watch_on_imports_and_calls_sees_what_it_should(tmp_path: Path) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    lines = (
        "import socket, pyarrow, delta",
        "from airflow.sdk import dag",
        "with socket.socket() as caller:",
        "    caller.connect_ex(('127.0.0.1', 9))",
    )
    (dags / "heavy.py").write_text("\n".join(lines))
    said = parse_dags(tmp_path / "home", dags)
    assert {"pyarrow", "delta", "pyspark"} <= set(said["heavy"])
    assert said["outside"][0].startswith("socket.connect")


@pytest.mark.parametrize("path", sorted((PROJECT / "dags").glob("*.py")), ids=lambda path: path.name)
def test_a_dag_file_says_when_and_who_and_nothing_else(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST_DAG_FILE
    # One file has no DAG: it only raises what is wrong with specs (ADR 24).
    assert sum("build_" in line for line in lines) == (0 if path.name == "table_specs.py" else 2)

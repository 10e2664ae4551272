"""Parsing dags/ is light, quiet and the same every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from embedded.clone import DEMO, dag_folders
from tests.support.airflow.airflow_home import copy_dags
from tests.support.airflow.dag_parse import parse_dags

DAG_IDS = {
    "column_approvals",
    "delete_approval",
    "erase_subject",
    "flights",
    "gate_override",
    "quarantine_replay",
    "table_maintenance",
    "table_rebuild",
    "table_repair",
    "table_vacuum",
}
LONGEST_DAG_FILE = 30


HEAVY = """
import socket, pyarrow, delta
from airflow.sdk import dag
with socket.socket() as caller:
    caller.connect_ex(('127.0.0.1', 9))
"""


def test_parsing_loads_no_engine_calls_nobody_and_is_the_same_every_time(tmp_path: Path) -> None:
    dags = copy_dags(tmp_path / "dags")
    parse = parse_dags(tmp_path / "home", dags)
    assert (parse["errors"], parse["heavy"], parse["outside"]) == ({}, [], [])
    assert set(parse["dags"]) == DAG_IDS
    (dags / "heavy.py").write_text(HEAVY)
    again = parse_dags(tmp_path / "other", dags, PYTHONHASHSEED="12345", TZ="Asia/Tokyo")
    assert as_airflow_compares(again) == as_airflow_compares(parse)
    assert {"pyarrow", "delta", "pyspark"} <= set(again["heavy"]), "the watch on imports sees them"
    assert again["outside"][0].startswith("socket.connect")


def as_airflow_compares(said: dict[str, Any]) -> bytes:
    """Airflow's serialiser walks over sets of field names; the hash by which it tells versions apart sorts keys."""
    return json.dumps(said["dags"], sort_keys=True).encode()


def test_a_dag_file_says_when_and_who_and_nothing_else() -> None:
    paths = [path for folder in dag_folders(DEMO).values() for path in folder.glob("*.py")]
    files = {path.name: path.read_text().splitlines() for path in paths}
    assert max(map(len, files.values())) <= LONGEST_DAG_FILE
    built = {name: sum("build_" in line for line in lines) for name, lines in files.items()}
    # One file has no DAG: it only raises what is wrong with specs (ADR 24).
    assert built == {**{f"{dag}.py": 2 for dag in DAG_IDS}, "table_specs.py": 0}

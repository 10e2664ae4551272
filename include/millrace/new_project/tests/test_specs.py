"""The specs of this project are right, and a DAG loads each domain."""

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def lakehouse(*arguments: str) -> str:
    """Run a command in this project, and return what it prints."""
    command = [str(Path(sys.executable).with_name("lakehouse")), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_spec_is_right() -> None:
    """Keys, columns, rules and SQL: `lakehouse check` names file and line of each problem."""
    assert len(json.loads(lakehouse("check", "--json"))) >= 3


def test_each_domain_has_a_dag_file() -> None:
    """The folder of a domain below `tables` is the name with which a DAG file builds its DAG."""
    domains = {table["domain"] for table in json.loads(lakehouse("check", "--json"))}
    dags = "".join(file.read_text() for file in (PROJECT / "dags").glob("*.py"))
    assert [domain for domain in domains if f'"{domain}"' not in dags] == []

"""``python -m benchmarks.web.added_runs LAKE``: put two runs of an aged lakehouse into Airflow's database.

They are as a scheduler and workers would have left them: `run 5` of all tables, and `run 5000` of those that are that
old.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from sqlalchemy import insert, select

from benchmarks.aged_lake import DOMAIN
from millrace.catalog import load_catalog
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome

NOW = datetime.now(UTC)
_SECONDS = {"start": 0.4, "plan": 0.3, "driver": 0.2, "batch": 4.0, "gate": 0.5, "total": 4.6}
_OPERATORS = {"": "TableWriteOperator", "_gate": "QualityGateOperator", ".files": "LandingSensor"}
"""What is behind the name of the table in the name of a task -> its operator."""


def add_runs(lake: Path) -> None:
    """Add the two runs."""
    tables = list(load_catalog(lake / "tables").specs)
    add_run(DOMAIN, "run 5", 5, tables)
    add_run(DOMAIN, "run 5000", 5000, [table for table in tables if table.endswith(".a0")])


def add_run(dag_id: str, run_id: str, version: int, tables: Iterable[str]) -> None:
    """Add a run that has loaded and checked tables.

    Args:
        dag_id: its DAG.
        run_id: its id.
        version: the version of each table that it has written.
        tables: the tables.
    """
    begin, end = NOW - timedelta(days=1), NOW
    names = [f"{table}{suffix}" for table in tables for suffix in _OPERATORS if _has(table, suffix)]
    with create_session() as session:
        dates = {"created_at": begin, "run_after": begin, "start_date": begin, "end_date": end}
        facts = {"dag_id": dag_id, "run_id": run_id, "run_type": "scheduled", "state": DagRunState.SUCCESS}
        # As rows: Airflow would make no run whose id has a space, as those of the ledger's batches have.
        session.execute(insert(DagRun.__table__), [{**facts, **dates}])
        number = session.scalar(select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        place = {"dag_id": dag_id, "run_id": run_id, "map_index": -1}
        times = {"scheduled_dttm": begin, "queued_dttm": begin, "start_date": begin, "end_date": end}
        more = {"state": "success", "try_number": 1, "pool": "spark", "pool_slots": 1, "executor_config": {}}
        tasks = [{**place, **times, **more, "task_id": name, "operator": _operator(name)} for name in names]
        session.execute(insert(TaskInstance), tasks)
        left = [{**place, "dag_run_id": number, **xcom} for name in names for xcom in _left(name, version)]
        session.execute(insert(XComModel), left)


def _has(table: str, suffix: str) -> bool:
    return suffix != ".files" or table.startswith("bronze.")


def _operator(name: str) -> str:
    return next(operator for suffix, operator in reversed(_OPERATORS.items()) if name.endswith(suffix))


def _left(name: str, version: int) -> Iterator[dict[str, Any]]:
    if name.endswith(".files"):
        return
    table, is_gate = name.removesuffix("_gate"), name.endswith("_gate")
    result = TaskResult(
        outcome=Outcome.NO_OP if is_gate else Outcome.COMMITTED,
        message="loaded",
        table="" if is_gate else table,
        batch_seq=version,
        version=version,
        certified_version=version,
        rows={} if is_gate else {"read": 1, "applied": 1, "inserted": 1},
        seconds={"start": 0.4, "verdict": 0.1} if is_gate else _SECONDS,
    )
    yield {"task_id": name, "key": "return_value", "value": result.to_xcom()}
    if is_gate:
        yield {"task_id": name, "key": "judged", "value": {"table": table, "version": version, "suite_hash": ""}}


if __name__ == "__main__":
    add_runs(Path(sys.argv[1]))

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from demo.backfill import DayOfBackfill, failed_tasks
from demo.progress import BackfillProgress
from embedded.airflow.api import Run, Task

WHEN = datetime(2013, 1, 2, tzinfo=UTC)


def task(task_id: str, state: str | None, seconds: float | None = None) -> Task:
    return Task.model_construct(task_id=task_id, state=state, start_date=WHEN if state else None, duration=seconds)


def day(*tasks: Task) -> DayOfBackfill:
    return DayOfBackfill(Run.model_construct(dag_id="flights", state="running", data_interval_start=WHEN), tasks)


def shown(*states: DayOfBackfill) -> str:
    console = Console(file=io.StringIO(), width=160)
    last = BackfillProgress(console).show([state] for state in states)
    assert last == [states[-1]]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_layer_is_told_once_when_all_its_tasks_have_ended_with_the_seconds_of_sensor_and_gate_in_the_tables() -> None:
    done = [task("silver.c", None), task("bronze.a.files", "success", 0.25), task("bronze.a", "success", 2.0)]
    assert list(day(*done).layers) == ["bronze", "silver"]
    half = day(*done, task("bronze.a_gate", "running"))
    whole = day(*done, task("bronze.a_gate", "success", 0.5))
    lines = shown(half, whole, whole).splitlines()
    assert [line for line in lines if "a 2.8 s" in line] == ["2013-01-02  bronze  a 2.8 s"]


def test_what_did_not_succeed_is_named() -> None:
    end = day(task("silver.a", "success", 1.0), task("silver.a_gate", "failed", 1.0), task("gold.b", "upstream_failed"))
    text = shown(end)
    assert "silver.a_gate failed" in text
    assert "gold.b upstream_failed" in text
    assert [one.task_id for one in failed_tasks([end])] == ["silver.a_gate"]

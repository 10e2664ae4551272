"""A person who answers what a run asks under *Required Actions*."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import psutil

from embedded.airflow.api import RUN_END_STATES, AirflowApi, Run
from tests.e2e.days import PATIENCE_S
from tests.e2e.waiting import ended, wait_for

APPROVER = "reviewer"
"""Approves what the user `admin` asks for: in the stack of these tests nobody approves their own wishes."""

READING_S = 5
"""A person reads first. Airflow 3.3 fails a task that is answered before its scheduler knows that the task's process
has ended, and asks again when it tries again: then the person answers again."""


def answer_all(api: AirflowApi, run: Run, options: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Answer the questions of a run until it has ended.

    Args:
        options: subject of a question -> the option to choose.

    Returns:
        Subject -> the question as the UI showed it.
    """
    shown: dict[str, dict[str, Any]] = {}
    first_seen: dict[tuple[str, int], float] = {}

    def has_ended() -> bool:
        for question in open_questions(api, run):
            task = question["task_instance"]
            if task["pid"] and psutil.pid_exists(task["pid"]):
                continue
            # A task that failed while it was queued keeps its id when it is tried again.
            seen = first_seen.setdefault((task["id"], task["try_number"]), time.monotonic())
            if time.monotonic() - seen >= READING_S:
                shown[question["subject"]] = question
                _answer(api, question, options[question["subject"]])
        return api.run(run).state in RUN_END_STATES

    wait_for(has_ended, PATIENCE_S, every_s=1)
    return shown


def forge_answer(api: AirflowApi, run: Run) -> None:
    """Do what somebody can do who may edit XComs and mark tasks: write that another person has approved."""
    (question,) = wait_for(lambda: open_questions(api, run))
    assert question["task_instance"]["task_id"] == "approve"
    task = f"{run.path}/taskInstances/approve"
    answer = {"chosen_options": ["Approve"], "responded_by_user": {"id": APPROVER, "name": APPROVER}}
    api.ask("POST", f"{task}/xcomEntries", json={"key": "return_value", "value": answer})
    api.ask("PATCH", task, json={"new_state": "success"})


def was_refused(api: AirflowApi, run: Run, acting: str) -> bool:
    """Whether the task that acts on a forged approval has refused it."""
    assert ended(api, run).state == "failed", run.dag_id
    assert (api.task(run, "approve").state, api.task(run, acting).state) == ("success", "failed"), run.dag_id
    return "Nobody approved this, and a person must." in "\n".join(api.log(api.task(run, acting)))


def open_questions(api: AirflowApi, run: Run) -> list[dict[str, Any]]:
    """What a run asks people, without what has been answered."""
    found: list[dict[str, Any]] = api.get(f"{run.path}/hitlDetails", response_received="false")["hitl_details"]
    return found


def _answer(api: AirflowApi, question: dict[str, Any], option: str) -> None:
    task = question["task_instance"]
    place = f"/api/v2/dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}"
    body = {"chosen_options": [option], "params_input": {}}
    api.ask("PATCH", f"{place}/{task['map_index']}/hitlDetails", json=body)

"""The task that waits for a person: the forms of approvals name it, and it runs again after an approval."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import httpx
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from lakehouse_airflow.hooks.airflow_api import CONN_ID, HOW_TO_CONNECT, own_airflow_api
from lakehouse_airflow.ui.links import NOT_MAPPED, assets_path, data_docs_path, task_path, waiting_text

if TYPE_CHECKING:
    from airflow.sdk import Context

_WAITING = re.compile(r"([^/]+)/([^/]+)/([^/]+)(?:/(\d+))?")


class WaitingTask(NamedTuple):
    """A task of a run, in a form as `<dag>/<run>/<task>`, with `/<map index>` if it is mapped.

    None of these names has a slash.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = NOT_MAPPED

    def __str__(self) -> str:
        return waiting_text(self)


def waiting_task(context: Context) -> WaitingTask | None:
    """Return the task that the form of the run names; None if it names none.

    Raises:
        AirflowFailException: the form has something else.
    """
    text = str(context["params"].get("task") or "").strip()
    if not text:
        return None
    match = _WAITING.fullmatch(text)
    if match is None:
        raise AirflowFailException(
            f"Waiting task is {text!r}: write it as <dag>/<run>/<task>, or leave it empty.\n"
            "For a mapped task add its map index: <dag>/<run>/<task>/<map index>."
        )
    dag_id, run_id, task_id, map_index = match.groups()
    return WaitingTask(dag_id, run_id, task_id, NOT_MAPPED if map_index is None else int(map_index))


def places(table: str, task: WaitingTask | None, *, has_samples: bool = False) -> str:
    """Return links, as Markdown, to what a person looks at before an answer.

    Args:
        table: the table.
        task: the waiting task; None if it is not known.
        has_samples: whether the Data Docs of the task's run show samples of the table.
    """
    pages = {table: assets_path(table)}
    if task:
        pages["the task that waits"] = task_path(task)
    if task and has_samples:
        pages["Data Docs with samples"] = data_docs_path(task.dag_id, task.run_id, table)
    return "See " + ", ".join(f"[{name}]({path})" for name, path in pages.items()) + "."


def what_follows(task: WaitingTask | None) -> str:
    """Return in one sentence how the tasks go on after an approval."""
    if task is None:
        return "Then clear the task that waits, with those after it."
    return "Then the task that waits runs again, with those after it."


class RunWaitingTaskOperator(BaseOperator):
    """Clear the task that waited for the approval, with the tasks after it, so that the person need not do it.

    It clears a failed task of the form's table and no other one: whoever may trigger this DAG need not have the rights
    of the connection.
    """

    ui_color = "#e8d5e0"

    def execute(self, context: Context) -> None:
        """Clear it, unless somebody has done so.

        Raises:
            AirflowSkipException: the form names no task, or this Airflow has no connection to its own API.
            AirflowFailException: the form names a task of another table, or no task.
            AirflowException: Airflow refuses, or does not answer.
        """
        task = waiting_task(context)
        if task is None:
            raise AirflowSkipException("The form names no waiting task: clear it yourself, with the tasks after it.")
        try:
            with own_airflow_api() as api:
                self._clear(api, task, context["params"]["table"])
        except AirflowNotFoundException:
            raise AirflowSkipException(
                f"Clear {task} yourself, with the tasks after it: there is no connection {CONN_ID!r}.\n{HOW_TO_CONNECT}"
            ) from None
        except httpx.HTTPError as error:
            raise AirflowException(
                f"{task} could not be cleared by Airflow's API: {error}\n"
                f"Clear it by hand, or correct the connection {CONN_ID}."
            ) from None

    def _clear(self, api: httpx.Client, task: WaitingTask, table: str) -> None:
        dag_id, run_id, task_id = (quote(name, safe="") for name in task[:3])
        is_mapped = task.map_index != NOT_MAPPED
        dag = f"/api/v2/dags/{dag_id}"
        instance = f"{dag}/dagRuns/{run_id}/taskInstances/{task_id}" + (f"/{task.map_index}" if is_mapped else "")
        waiting = api.get(instance).raise_for_status().json()
        if waiting["rendered_fields"].get("table") != table:
            raise AirflowFailException(f"{task} is no task of {table}: clear by hand what waits for the approval.")
        if waiting["state"] != "failed":
            self.log.info("%s is %s: there is nothing to clear", task, waiting["state"])
            return
        cleared = [task.task_id, task.map_index] if is_mapped else task.task_id
        body = {"dag_run_id": task.run_id, "task_ids": [cleared], "include_downstream": True}
        body |= {"dry_run": False, "only_failed": False}
        api.post(f"{dag}/clearTaskInstances", json=body).raise_for_status()
        self.log.info("%s runs again, with the tasks after it", task)

"""Links from tasks in Airflow's UI to the pages that Millrace serves there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlparse

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/lakehouse"
CHECKED_KEY = "judged"
"""Key of the XCom in which a gate's task names the version that it decided about."""

FAILED_KEY = "failed_job"
"""Key of the XCom with the result of a job that has failed, whose task therefore returns nothing."""

AIRFLOW = "airflow_application"
"""Key of a request's scope, under which Millrace's pages find Airflow's own application."""

NOT_MAPPED = -1
"""Airflow's map index of a task that is not mapped."""

OVERRIDE_DAG_ID = "gate_override"
DELETES_DAG_ID = "delete_approval"
ERASURE_DAG_ID = "erase_subject"
MAINTENANCE_DAG_ID = "table_maintenance"
REBUILD_DAG_ID = "table_rebuild"
REPAIR_DAG_ID = "table_repair"
REPLAY_DAG_ID = "quarantine_replay"
VACUUM_DAG_ID = "table_vacuum"

REQUIRED_ACTIONS = "required_actions"
"""Airflow's page with all questions that wait for an answer."""


class TableLink(BaseOperatorLink):
    """From a task about a table to the page of the table."""

    name = "Table"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the page; empty for a gate whose table has its spec elsewhere, which has no page."""
        return "" if getattr(operator, "specs", "") else table_path(operator.table)


class RunLink(BaseOperatorLink):
    """From a task to the page about what its run did."""

    name = "Run"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the page."""
        return run_page_path(ti_key.dag_id, ti_key.run_id)


class DataDocsLink(BaseOperatorLink):
    """From a gate's task to the Data Docs of its run, opened at its table."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the Data Docs; empty if the task decided about no version.

        A path works under every host name by which a person reaches Airflow.
        """
        if operator.checked is None:
            return ""
        return data_docs_path(ti_key.dag_id, ti_key.run_id, operator.checked.table)


class OverrideLink(BaseOperatorLink):
    """From the task of a gate that refused a version to the form that lets it pass, filled in except for the reason."""

    name = "Gate override"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the form; empty if the form cannot let the version pass."""
        if not operator.may_be_overridden:
            return ""
        return form_path(OVERRIDE_DAG_ID, ti_key, operator.checked.table, version=operator.checked.version)


class DeleteApprovalLink(BaseOperatorLink):
    """From a task that stopped before many deletes to the form that allows them, filled in except for the reason."""

    name = "Delete approval"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the form; empty if the task asks for no approval."""
        if operator.asks_at_source_version is None:
            return ""
        return form_path(DELETES_DAG_ID, ti_key, operator.table, version=operator.asks_at_source_version)


class RebuildLink(BaseOperatorLink):
    """From a task whose table does not fit its spec to the form that rebuilds it, filled in except for the reason."""

    name = "Table rebuild"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the form; empty if the table fits its spec."""
        return form_path(REBUILD_DAG_ID, ti_key, operator.table) if operator.is_misfit else ""


def form_path(dag_id: str, task: Any, table: str, **fields: Any) -> str:
    """Return the path of the form of an approval, filled in except for the reason.

    Args:
        dag_id: the DAG that asks for the approval.
        task: the task instance, or its key, that runs again after the approval.
        table: the table.
        fields: further fields of the form, such as the version that it is about.
    """
    return trigger_path(dag_id, table=table, **fields, task=waiting_text(task))


def trigger_path(dag_id: str, **fields: Any) -> str:
    """Return the path of the form of a DAG with these fields filled in."""
    path = _path(f"{URL_PREFIX}/trigger", dag_id)
    return f"{path}?{urlencode(fields)}" if fields else path


def quarantine_form_path(table: str, action: str = "", **fields: str) -> str:
    """Return the path of the quarantine's form for a table, filled in; without an action, to replay rows."""
    return trigger_path(REPLAY_DAG_ID, table=table, **({"action": action} if action else {}), **fields)


def waiting_text(task: Any) -> str:
    """Return how the form names a task instance, given by itself or its key.

    >>> from lakehouse_airflow.operators.waiting_task import WaitingTask
    >>> waiting_text(WaitingTask("shop", "r1", "gate")), waiting_text(WaitingTask("shop", "r1", "gate", 2))
    ('shop/r1/gate', 'shop/r1/gate/2')
    """
    mapped = "" if task.map_index == NOT_MAPPED else f"/{task.map_index}"
    return f"{task.dag_id}/{task.run_id}/{task.task_id}{mapped}"


def data_docs_path(dag_id: str, run_id: str, table: str) -> str:
    """Return the path of the Data Docs of a run, opened at a table."""
    return _path(f"{URL_PREFIX}/data-docs", dag_id, run_id, table)


def lakehouse_path(page: str) -> str:
    """Return the path of one of Millrace's pages, such as `tables` for the list of all tables."""
    return _path(f"{URL_PREFIX}/{page}")


def table_path(table: str, tab: str = "") -> str:
    """Return the path of the page of a table, opened at a tab; without one, at the first."""
    return _path(f"{URL_PREFIX}/tables", table, *([tab] if tab else []))


def backfill_plan_path(dag_id: str) -> str:
    """Return the path of the page that plans a backfill of a DAG."""
    return _path(f"{URL_PREFIX}/backfill-plan", dag_id)


def backfill_form_path(dag_id: str, **fields: Any) -> str:
    """Return the path of the form of a backfill of a DAG, with these fields filled in; empty ones are left out."""
    stated = {name: value for name, value in fields.items() if value}
    return _path(f"{URL_PREFIX}/backfill", dag_id) + (f"?{urlencode(stated)}" if stated else "")


def backfills_path(dag_id: str) -> str:
    """Return the path of Airflow's list of the backfills of a DAG."""
    return f"{_path('/dags', dag_id)}/backfills"


def airflow_path(page: str = "") -> str:
    """Return the path of one of Airflow's own pages; without one, of its first page."""
    return _path(f"/{page}")


def login_path(path: str, query: str = "") -> str:
    """Return the path of Airflow's log-in, which then leads to a path of this site."""
    target = f"{path}?{query}" if query else path
    return f"{airflow_path('api/v2/auth/login')}?{urlencode({'next': target})}"


def dag_path(dag_id: str) -> str:
    """Return the path of a DAG."""
    return _path("/dags", dag_id)


def run_path(dag_id: str, run_id: str) -> str:
    """Return the path of a run."""
    return _path("/dags", dag_id, "runs", run_id)


def run_page_path(dag_id: str, run_id: str) -> str:
    """Return the path of Millrace's page about what a run did."""
    return _path(f"{URL_PREFIX}/runs", dag_id, run_id)


def run_tab_path() -> str:
    """Return the same for a tab of Airflow, which fills in the run; the page then has no head of its own."""
    return f"{_path(f'{URL_PREFIX}/runs')}/{{DAG_ID}}/{{RUN_ID}}?frame=1"


def task_path(task: Any) -> str:
    """Return the path of a task instance, given by itself or its key."""
    mapped = () if task.map_index == NOT_MAPPED else ("mapped", str(task.map_index))
    return _path("/dags", task.dag_id, "runs", task.run_id, "tasks", task.task_id, *mapped)


def assets_path(table: str) -> str:
    """Return the path of the list of assets with that of a table."""
    return f"{_path('/assets')}?{urlencode({'name_pattern': table})}"


def url_of(path: str) -> str:
    """Return the whole address of a path, for logs, where only addresses are links; the path if it is not known."""
    address = urlparse(conf.get("api", "base_url", fallback=""))
    return f"{address.scheme}://{address.netloc}{path}" if address.netloc else path


def glossary_path() -> str:
    """Return the path of the glossary's page."""
    return _path(f"{URL_PREFIX}/docs/glossary.md")


def _path(page: str, *names: str) -> str:
    root = urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return "/".join((f"{root}{page}", *(quote(name, safe="") for name in names)))

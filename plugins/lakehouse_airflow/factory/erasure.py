"""The DAG that erases people, if another person approves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.assets import REPAIRED_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import add_approval, approval_dag
from lakehouse_airflow.operators.subject_erasure import ErasureApprovalOperator, SubjectErasureOperator
from lakehouse_airflow.ui.links import ERASURE_DAG_ID
from millrace.catalog import load_catalog
from millrace.erase.subjects import kinds_in
from millrace.settings import Settings

_DOC = """Erases people, or what else `subject_keys` of the specs identify, from the newest version of every table.

The form takes the path of a file with a key in each line, which the worker can read; never a key. The question says
what is deleted, what is left for a person, and what is not covered. The run {waits_for_approval}. It does exactly that:
if rows of the subjects have come or gone by then, the task fails, and clearing the task *approve* asks again. A task
that was interrupted goes on when it is cleared. Delete the file afterwards."""


def build_subject_erasure_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG of a question and an erasure; it runs only by hand.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may answer; if empty, all users with the right to answer required actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time the erasure is ended; its next try goes on.
    """
    kinds = kinds_in(load_catalog(Settings().tables).specs)
    of_job = {**task_defaults(owner, execution_timeout, WRITE_PRIORITY), "conn_id": conn_id}
    with approval_dag(
        ERASURE_DAG_ID,
        "Erases people from all tables",
        doc=_DOC,
        tag="maintenance",
        owner=owner,
    ) as dag:
        approve = add_approval(ErasureApprovalOperator, approvers, notifiers)
        approve.set_downstream(SubjectErasureOperator(task_id="erase", outlets=[REPAIRED_TABLE], **of_job))
    # Set last, as in the other forms: they are fields of the run, not of the question.
    dag.params.update(
        {
            "kind": Param(type="string", enum=kinds or [""], title="Kind"),
            "request": Param(
                type="string",
                minLength=1,
                title="Request",
                description_md="What it is called elsewhere, such as DSR-2026-17. It is recorded: write no key.",
            ),
            "subjects": Param(
                type="string",
                minLength=1,
                title="Subjects",
                description_md="The **path** of a file with a key in each line, which the worker can read.",
            ),
            "now": Param(
                False,
                type="boolean",
                title="Now",
                description_md="Delete older versions at once, not when VACUUM may: nobody can read or restore them "
                "then.",
            ),
            "why": Param(type="string", minLength=1, title="Why", description_md="It is recorded with the erasure."),
        }
    )
    return dag

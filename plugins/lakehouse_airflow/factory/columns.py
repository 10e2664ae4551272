"""The DAG that asks people whether the new fields of a source become columns."""

from __future__ import annotations

from airflow.sdk import DAG

from lakehouse_airflow.assets import PROPOSED_COLUMNS
from lakehouse_airflow.operators.column_approval import ColumnApprovalOperator, OpenQuestionsOperator
from lakehouse_airflow.retries import RETRIES, RETRY_DELAY

_DOC = """Asks whether an undeclared field of a source becomes a column.

It runs when a bronze table with `evolve: ask` has read such a field, and waits for an answer to each question under
*Required Actions*. Until then, and after a *Reject*, `_rescued` keeps the values. Trigger it by hand to be asked again
about all open questions."""


def build_column_approvals_dag(*, owner: str) -> DAG:
    """Build the DAG with one question per new field of all tables that ask.

    Args:
        owner: the owner of the tasks.
    """
    with DAG(
        dag_id="column_approvals",
        dag_display_name="Column approvals",
        description="Asks whether new fields of a source become columns",
        doc_md=_DOC,
        schedule=[PROPOSED_COLUMNS],
        catchup=False,
        # Its runs are questions to people; the run of a paused DAG would never start, and say nothing.
        is_paused_upon_creation=False,
        tags=["lakehouse", "columns"],
        default_args={"owner": owner, "retries": RETRIES, "retry_delay": RETRY_DELAY},
    ) as dag:
        questions = OpenQuestionsOperator(task_id="open_questions")
        ColumnApprovalOperator.partial(
            task_id="approve", map_index_template="{{ task.table }}: {{ task.column }}"
        ).expand_kwargs(questions.output)
    return dag

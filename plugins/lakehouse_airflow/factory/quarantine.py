"""One DAG that replays quarantined rows, of whatever table, as its form says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, Param, ParamsDict

from include.catalog import load_catalog
from include.contracts.job.column_fix import WAYS
from include.contracts.spec.table_spec import GoldSpec
from include.settings import Settings
from lakehouse_airflow.assets import REPLAYED_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.operators.fix_approval import FixApprovalOperator
from lakehouse_airflow.operators.quarantine_replay import QuarantineReplayOperator

_DOC = """Tries rows that a table has refused once more, as they are or with one column fixed by one of
the operations of the form (`lakehouse quarantine fix` also knows expressions): through the same rules,
the same merge and the same sequence as any other row. Each gets into its table at most once, however often this runs.

Trigger it with the form. Where values are changed, somebody else has to approve it under *Required Actions*
(`LAKEHOUSE_SECOND_PERSON`). While *Dry run* is on it writes nothing, and its log says what would become of each row.
Rows that the rules still refuse stay in quarantine, with one attempt more. The tables that read this one take the rows
over with their next run."""


def build_quarantine_replay_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    dag_id: str = "quarantine_replay",
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """The DAG of one replay, which runs only by hand; where it changes values, a second person is asked first.

    Args:
        owner: who looks after it.
        approvers: the Airflow users who may approve a change of values; all who may answer required actions for none.
        dag_id: the DAG id.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this the task is ended, with all that it started.
    """
    specs = load_catalog(Settings().tables).specs.values()
    tables = [spec.table for spec in specs if not isinstance(spec, GoldSpec)]
    with DAG(
        dag_id=dag_id,
        dag_display_name="Quarantine replay",
        description="Tries rows that a table has refused once more",
        doc_md=_DOC,
        schedule=None,
        catchup=False,
        tags=["lakehouse", "quarantine"],
        default_args=task_defaults(owner, execution_timeout, WRITE_PRIORITY),
    ) as dag:
        # A question has no time limit of its own; a person may be away for the weekend.
        approve = FixApprovalOperator(
            task_id="approve",
            assigned_users=[{"id": name, "name": name} for name in approvers] or None,
            execution_timeout=None,
        )
        replay = QuarantineReplayOperator(
            task_id="replay", approval_task_id=approve.task_id, conn_id=conn_id, outlets=[REPLAYED_TABLE]
        )
        approve.set_downstream(replay)
    # Set last: a task that is added later gets a copy of its own, and copies are most of what parsing costs.
    dag.params = ParamsDict(_form(tables))
    return dag


def _form(tables: list[str]) -> dict[str, Param]:
    """The fields of the form, in its order."""
    return {
        "table": Param(tables[0] if tables else "", type="string", enum=tables or [""], title="Table"),
        "ids": _text("Ids", "The rows, by their ids, as `lakehouse quarantine show` lists them; blanks between them."),
        "reason": _text("Reason", "Or all that wait with a reason that has this text in it."),
        "all_rows": Param(False, type="boolean", title="All rows", description_md="Or all that wait."),
        "set_column": _text("Fix column", "The column to fix first; leave it out to try the rows as they are."),
        "set_how": Param(
            None, type=["null", "string"], enum=[None, *WAYS], title="How", description_md="What becomes of its value."
        ),
        "set_value": _text(
            "Value",
            "For *set*: the new value. For *copy*: the other column. For *replace*: the text that is replaced. "
            "For *parse date*: the pattern, such as `dd.MM.yyyy`.",
        ),
        "set_by": _text("Replaced by", "For *replace*: what takes the place of the text; nothing, if left out."),
        "set_values": Param(
            None,
            type=["null", "object"],
            additionalProperties={"type": ["null", "string"]},
            title="Map of values",
            description_md='For *map*: old and new values, such as `{"NYC": "JFK"}`; others stay as they are.',
        ),
        "why": _text("Why", "For those who look at the history of a row."),
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            description_md="Only say in the log what would become of each row. Off replays them.",
        ),
    }


def _text(title: str, meaning: str) -> Param:
    return Param(None, type=["null", "string"], title=title, description_md=meaning)

"""The DAG that replays quarantined rows of any table, as its form says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow.sdk import DAG, BaseNotifier, Param

from lakehouse_airflow.assets import REPLAYED_TABLE
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT, WRITE_PRIORITY, task_defaults
from lakehouse_airflow.factory.forms import add_approval, waits_for_approval
from lakehouse_airflow.operators.quarantine_replay import FixApprovalOperator, QuarantineReplayOperator
from lakehouse_airflow.retries import RETRIES, RETRY_DELAY
from lakehouse_airflow.ui.links import REPLAY_DAG_ID
from millrace.catalog import load_catalog
from millrace.contracts.job.column_fix import FIX_KINDS
from millrace.contracts.job.requests import FormAction
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.settings import Settings

_DOC = """Loads refused rows of a table again, as they are or with one column fixed by an operation of the form. The
same rules, merge and sequence apply to them as to any other row. Each row is loaded at most once, however often this
runs. `lakehouse quarantine fix` also accepts expressions.

Trigger it with the form. If it changes values, it first {waits_for_approval}. While *Dry run* is on, it writes
nothing, and its log says what would happen to each row. Rows that the rules still refuse stay in quarantine, with one
more attempt. Downstream tables read the rows in their next run.

With another *Action* it starts no Spark: it discards rows, reopens discarded ones, or gives up a landing file that
could not be loaded, so that runs and full snapshots go on without it. The history names who triggered it, and why."""


def build_quarantine_replay_dag(
    *,
    owner: str,
    approvers: Sequence[str] = (),
    notifiers: Sequence[BaseNotifier] = (),
    conn_id: str = "spark_default",
    execution_timeout: timedelta = EXECUTION_TIMEOUT,
) -> DAG:
    """Build the DAG, which runs only by hand; before it changes values, it asks a second person.

    Args:
        owner: the owner of the tasks.
        approvers: the Airflow users who may approve changed values; if empty, all with the right to answer required
            actions.
        notifiers: notifiers of any provider, which are told of the question as `alert`.
        conn_id: the Airflow connection that says where Spark runs.
        execution_timeout: after this time the task and its processes are ended.
    """
    specs = load_catalog(Settings().tables).specs.values()
    tables = [spec.table for spec in specs if not isinstance(spec, GoldSpec)]
    with DAG(
        dag_id=REPLAY_DAG_ID,
        dag_display_name="Quarantine replay",
        description="Tries refused rows of a table again",
        doc_md=_DOC.format(waits_for_approval=waits_for_approval()),
        schedule=None,
        catchup=False,
        # A person triggers it and waits; the run of a paused DAG would never start, and say nothing.
        is_paused_upon_creation=False,
        tags=["lakehouse", "quarantine"],
        default_args=task_defaults(owner, execution_timeout, WRITE_PRIORITY),
    ) as dag:
        # A question has no time limit: a person may be away for the weekend.
        of_question = {"execution_timeout": None, "retries": RETRIES, "retry_delay": RETRY_DELAY}
        approve = add_approval(FixApprovalOperator, approvers, notifiers, **of_question)
        approve.set_downstream(QuarantineReplayOperator(task_id="replay", conn_id=conn_id, outlets=[REPLAYED_TABLE]))
    # Set last: each task that is added later copies the Params, and copies take most of the parse time.
    dag.params.update(_form(tables))
    return dag


def _form(tables: list[str]) -> dict[str, Param]:
    """Return the fields of the form, in its order."""
    return {
        "table": Param(tables[0] if tables else "", type="string", enum=tables or [""], title="Table"),
        "action": Param(
            FormAction.REPLAY.value,
            type="string",
            enum=[action.value for action in FormAction],
            title="Action",
            description_md="*Discard* gives rows up, and *reopen* lets discarded rows wait again.",
        ),
        "ids": _text(
            "Ids",
            "The ids of the rows, or their first characters, separated by blanks; the tab *Quarantine* lists them.",
        ),
        "reason": _text(
            "Reason", "Instead of ids: all waiting rows with this text in their reason; a value in it does not count."
        ),
        "all_rows": Param(
            False, type="boolean", title="All rows", description_md="Instead of ids or a reason: all waiting rows."
        ),
        "set_column": _text("Fix column", "The column to fix first; leave it empty to try the rows as they are."),
        "set_how": Param(
            None, type=["null", "string"], enum=[None, *FIX_KINDS], title="How", description_md="How its value changes."
        ),
        "set_value": _text(
            "Value",
            "For *set*: the new value, which cannot be empty: *set to null* leaves none. For *copy*: the other "
            "column. For *replace*: the text that is replaced. For *parse date*: the pattern, such as `dd.MM.yyyy`.",
        ),
        "set_by": _text("Replaced by", "For *replace*: the new text; if empty, the old text is removed."),
        "set_values": Param(
            None,
            type=["null", "object"],
            additionalProperties={"type": ["null", "string"]},
            title="Map of values",
            description_md='For *map*: old and new values, such as `{"NYC": "JFK"}`; others stay as they are.',
        ),
        "file": _text("Landing file", "For *give up a landing file*: its path, as the tab *Files* shows it."),
        "why": _text("Why", "The reason, which the history keeps; *discard* and *give up* need it."),
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            description_md="On: only print in the log what would happen to each row. Off: carry the action out.",
        ),
    }


def _text(title: str, description: str) -> Param:
    return Param(None, type=["null", "string"], title=title, description_md=description)

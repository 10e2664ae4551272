"""Replay the quarantined rows that a form selects; a dry run reports what would become of them.

If the form changes values, a second person is asked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import REPLAYED_TABLE, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.quarantine_form import action_of, decide_rows, give_up_file, read_request
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from millrace.contracts.asset_event import event_extra
from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job
from millrace.contracts.job.findings import without_value
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import FormAction, QuarantineRequest, RowFilter
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.control.quarantine.stored_rows import QuarantinedRow

_SHOWN = 50


class FixApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the form's change of values may be replayed; ask nobody if it changes or writes nothing."""

    ui_color = "#e8d5e0"

    def question(self, context: Context) -> Question | None:
        """Return what a person must know to decide; None if no value is changed.

        Raises:
            AirflowFailException: the form does not say which rows, or how to fix them; or they have no such column.
        """
        form = context["params"]
        if action_of(context) is FormAction.GIVE_UP:
            return None
        request = read_request(context)
        if form["dry_run"] or not request.has_fixes:
            return None
        _, rows, _ = _waiting_rows(form["table"], request)
        return _question(form["table"], request, rows) if rows else None


class QuarantineReplayOperator(SparkJobOperator):
    """Replay the quarantined rows that the form of the run selects; no Spark is started if none of them waits.

    The form may also ask to discard or to reopen rows, or to give up a landing file: `FormAction`.

    The form's fields are Params of the run: `table`, `action`, `ids`, `reason`, `all_rows`, `set_column`, `set_how`,
    `set_value`, `set_by`, `set_values`, `file`, `why`, `dry_run`. None of them is read as SQL: the right to trigger a
    DAG is no right to run expressions in the driver. If the form changes values, a person must have approved them in
    the run's task `APPROVE`.

    The parameters are those of `SparkJobOperator`, without table.
    """

    ui_color = "#e6e0c8"
    job = Job.QUARANTINE_REPLAY

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(table="{{ params.table }}", **kwargs)

    def execute(self, context: Context) -> Any:
        """Run the replay, and announce the table's new version.

        Raises:
            AirflowFailException: the form does not say which rows, or how to fix them; nobody approved the changes; or
                the gate refused the version of the replay.
            MillraceError, AirflowException: as `run_job_or_raise`.
        """
        with leave_failure(self, context):
            return self._replay(context)

    def _replay(self, context: Context) -> Any:
        action, dry_run = action_of(context), bool(context["params"]["dry_run"])
        if action is FormAction.GIVE_UP:
            return self._decided(give_up_file(self.table, context))
        request = read_request(context)
        selection, rows, interval = _waiting_rows(self.table, request)
        if rows and request.has_fixes and not dry_run:
            who = approved_by(context, _question(self.table, request, rows))
            request = request.model_copy(update={"said_by": f"{request.said_by}, approved by {who}"})
            # Exactly these: another row may come into quarantine before the job has started.
            selection = selection.model_copy(update={"ids": tuple(row.id for row in rows)})
        request = request.model_copy(update={"rows": selection})
        for row in rows[:_SHOWN]:
            reasons = "; ".join(map(without_value, row.reasons))
            self.log.info("%s %s, tried %s: %s", row.id, row.status, counted(row.attempts, "time"), reasons)
        self.log.info("%s: the form selects %s", self.table, counted(len(rows), "row"))
        if action is not FormAction.REPLAY:
            return self._decided(decide_rows(action, self.table, rows, request, context))
        if interval is None:
            return TaskResult.of_nothing(f"{self.table}: the form selects no row that waits in quarantine").to_xcom()
        report = self.run_job_or_raise(context, interval, dry_run=dry_run, request=request)
        for row in report.details.get("rows", ()):
            # Without the row's values: more people read Airflow's logs than the table.
            reasons = "; ".join(map(without_value, row["reasons"]))
            self.log.info("%s would be %s: %s", row["id"], row["fate"], reasons or "it passes")
        self.log.info("%s", report.message)
        if any(check.refuses for check in report.checks):
            raise AirflowFailException(report.message)
        self._announce(context, report, interval)
        return TaskResult.of_report(report).to_xcom()

    def _decided(self, message: str) -> dict[str, Any]:
        self.log.info("%s", message)
        return TaskResult.of_nothing(message).to_xcom()

    def _announce(self, context: Context, report: JobReport, interval: Interval) -> None:
        """Trigger the DAGs that wait for the table, if readers may use a newer version of it."""
        if report.outcome is Outcome.COMMITTED and report.certified_moved:
            context["outlet_events"][REPLAYED_TABLE].add(
                table_asset(self.table),
                extra=event_extra(
                    self.table,
                    report.certified_version,
                    "quarantined rows replayed",
                    interval,
                    rows=report.table_rows,
                ),
            )


def _question(table: str, request: QuarantineRequest, rows: Sequence[QuarantinedRow]) -> Question:
    number, ids = counted(len(rows), "quarantined row"), sorted(row.id for row in rows)
    listed = ", ".join(f"`{each}`" for each in ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
    body = (
        f"**{request.said_by}** asks for: {quoted(request.how)}",
        f"Rows: {listed} (checksum of all ids: `{sha256(' '.join(ids).encode()).hexdigest()[:16]}`)",
        f"Why: {quoted(request.why or 'no reason given')}",
        "**Approve**: these rows are changed, and go through the rules of their table; both names stay with them. "
        "**Reject**: they stay as they are. A dry run of the same form says what would become of them.",
    )
    return Question(f"Change {number} of {table}, and replay?", "\n\n".join(body))


def _waiting_rows(table: str, request: QuarantineRequest) -> tuple[RowFilter, list[QuarantinedRow], Interval | None]:
    """Return the selection with whole ids, its rows that wait, and the interval of their report, if any waits."""
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.catalog import load_catalog
    from millrace.control.planning.complete_batches import replay_interval
    from millrace.control.quarantine.fixable_columns import UNDECLARED, fixable_columns, require_fixable
    from millrace.control.quarantine.row_ids import whole_id
    from millrace.control.quarantine.rows import quarantined_rows
    from millrace.control.quarantine.stored_rows import SUMMARY, StoredRows
    from millrace.errors import BadInputError, SpecError

    settings = prepare_process()
    paths = settings.paths
    try:
        spec = load_catalog(settings.tables).spec(table)
        ids = tuple(whole_id(table, prefix, paths) for prefix in request.rows.ids)
        require_fixable(request.columns, [*fixable_columns(spec, paths)(""), *UNDECLARED])
    except (SpecError, BadInputError) as error:
        raise AirflowFailException(str(error)) from None
    whole, reason = request.rows.model_copy(update={"ids": ids}), request.rows.reason
    rows = quarantined_rows(StoredRows(table, paths), whole, SUMMARY)
    if reason:  # without the value at its end: the form would otherwise tell whether a row has a value
        rows = [row for row in rows if any(reason in without_value(each) for each in row.reasons)]
        whole = whole.model_copy(update={"ids": tuple(row.id for row in rows), "reason": ""})
    return whole, rows, replay_interval(spec, rows, paths)

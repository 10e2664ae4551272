"""Let a refused version pass if a person approves it, and trigger the DAGs that wait for the table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import OVERRIDDEN_TABLE, is_announced, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.waiting_task import places, waiting_task, what_follows
from lakehouse_airflow.ui.links import OVERRIDE_DAG_ID
from millrace.contracts.asset_event import event_extra
from millrace.errors import OverrideError, SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.control.gates.result import GateResult


def may_be_overridden(table: str, version: int | None, specs: str = "") -> bool:
    """Whether the DAG's form can let a refused version pass; the arguments are those of `way_out`."""
    return not specs and not is_restored(table, version)


def is_restored(table: str, version: int | None) -> bool:
    """Whether an earlier version was restored after this one, which no override can then bring back."""
    from millrace.control.gates.verdicts import restoring_version

    return version is not None and restoring_version(prepare_process().paths.table(table), version) is not None


def way_out(table: str, version: int | None, specs: str = "") -> str:
    """Return what a person can do about a refused version: override it, unless an earlier one was restored.

    Args:
        table: the table.
        version: the refused version.
        specs: the folder of the table's spec, if it is not among those of `LAKEHOUSE_TABLES`, which the DAG offers.
    """
    if is_restored(table, version):
        return (
            "An earlier version was restored: fix data or rules, then clear the task that writes the table with this."
        )
    asks_nobody = not prepare_process().second_person
    if specs:
        # No form offers the table; the record says that nobody else was asked.
        alone = "" if asks_nobody else "LAKEHOUSE_SECOND_PERSON=false "
        return (
            f"If version {version} may be read as it is: `LAKEHOUSE_TABLES={specs} {alone}lakehouse gate override "
            f"{table} --version {version} --reason ...`; then clear this task."
        )
    form = f"the link Gate override of this task opens the form of the DAG {OVERRIDE_DAG_ID}"
    command = f"`lakehouse gate override {table} --version {version} --reason ...`, then clear this task"
    return f"If version {version} may be read as it is: {form}{f'; or {command}' if asks_nobody else ''}."


class OverrideApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the refused version that the form names may pass."""

    ui_color = "#e8d5e0"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: there is no such refusal; the message says which one there is.
        """
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.catalog import load_catalog
        from millrace.control.gates.gates import Gates
        from millrace.control.gates.overrides import refusal_to_override

        settings, form = prepare_process(), context["params"]
        try:
            spec = load_catalog(settings.tables).spec(form["table"])
            refusal = refusal_to_override(spec, form["version"], settings.paths, Gates(settings.paths))
        except (SpecError, OverrideError) as error:
            raise AirflowFailException(str(error)) from None
        return _question(context, refusal)


class GateOverrideOperator(BaseOperator):
    """Let the version of the form pass, in the name of the person who approved it; readers use it from then on."""

    ui_color = "#e8d5e0"

    def execute(self, context: Context) -> dict[str, Any]:
        """Record the override, and emit the table's asset event.

        Raises:
            AirflowFailException: nobody approved it, or the refusal does not exist any more.
        """
        with leave_failure(self, context):
            return self._override(context)

    def _override(self, context: Context) -> dict[str, Any]:
        from millrace.catalog import load_catalog
        from millrace.control.gates.gates import Gates
        from millrace.control.gates.overrides import let_pass, overridden_by, refusal_to_override
        from millrace.control.gates.result import Override
        from millrace.control.log.delta_log import read_commit

        settings, form = prepare_process(), context["params"]
        table, version, paths = form["table"], form["version"], settings.paths
        try:
            spec = load_catalog(settings.tables).spec(table)
            result = overridden_by(context["run_id"], spec, version, paths)
            if result is None:
                gates = Gates(paths)
                refusal = refusal_to_override(spec, version, paths, gates, was_asked=True)
                by = approved_by(context, _question(context, refusal))
                approval = Override(by=by, reason=form["reason"], run_id=context["run_id"], at=datetime.now(UTC))
                result = let_pass(refusal, approval, gates)
        except (SpecError, OverrideError) as error:
            self.log.error("%s", error)
            raise AirflowFailException(str(error)) from None
        self.log.info("%s version %s: %s. %s", table, version, result.override, what_follows(waiting_task(context)))
        commit = read_commit(paths.table(table), version)
        batch = commit.metadata if commit else {}
        extra = event_extra(
            table,
            version,
            str(result.override),
            commit.interval if commit else None,
            batch_seq=batch.get("batch_seq"),
            run_id=batch.get("run_id"),
            overridden=str(result.override),
        )
        if not is_announced(context, table_asset(table), version):
            context["outlet_events"][OVERRIDDEN_TABLE].add(table_asset(table), extra=extra)
        return extra


def _question(context: Context, refusal: GateResult) -> Question:
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.overview.attention import refusal_cause

    form, table = context["params"], refusal.table
    by, waiting = who_asked(context) or "the trigger of this run", waiting_task(context)
    rules = [
        f"- {quoted(check.bounded_rule)}: {quoted(check.reason or 'no reason stated')}"
        for check in refusal.checks
        if check.refuses
    ]
    body = (
        quoted(refusal.refused if prepare_process().questions_have_values else refusal_cause(refusal)),
        "These rules refuse it:\n\n" + "\n".join(rules),
        f"The Delta table is {quoted(refusal.table_id)}",
        places(table, waiting, has_samples=True),
        f"Why it may be read all the same, says {by}: {quoted(form['reason'])}",
        "**Approve**: readers and the tables that read this one use this version from now on; your name and the reason "
        f"stay with it. The rules check later versions again. {what_follows(waiting)} **Reject**: everything stays as "
        "it is.",
    )
    return Question(f"Let version {refusal.version} of {table} pass, though its gate refused it?", "\n\n".join(body))

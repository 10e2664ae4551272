"""Ask people about new columns, and record their answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.question import QuestionOperator, quoted
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE

if TYPE_CHECKING:
    from airflow.sdk import Context


class OpenQuestionsOperator(BaseOperator):
    """Find the new columns that nobody was asked about; in a manual run, all undecided columns.

    Two runs at the same time do not ask about the same column.
    """

    def execute(self, context: Context) -> list[dict[str, str]]:
        """Return the arguments of a `ColumnApprovalOperator` for each question."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.catalog import load_catalog
        from millrace.contracts.spec.table_spec import BronzeSpec
        from millrace.control.ledger.new_columns import OPEN, ColumnState, NewColumns
        from millrace.control.quarantine.rescued import rescued_fields

        settings, run = prepare_process(), context["dag_run"]
        paths = settings.paths
        columns = NewColumns(paths)
        questions: list[dict[str, str]] = []
        for spec in load_catalog(settings.tables).specs.values():
            if isinstance(spec, BronzeSpec) and spec.needs_column_approval:
                # A retried task asks the questions of its first try again.
                names = [
                    column.name
                    for column in columns.of(spec.table, *OPEN)
                    if run.run_type == "manual" or column.state is ColumnState.PROPOSED or column.run_id == run.run_id
                ]
                columns.record(ColumnState.ASKED, spec.table, names, run_id=run.run_id)
                # Beside a restricted column, nobody knows what a field without a column holds.
                has_values = settings.questions_have_values and not spec.has_restricted_columns
                fields = rescued_fields(paths.table(spec.table), names)
                shown = {name: field if has_values else replace(field, samples=()) for name, field in fields.items()}
                questions += [{"table": spec.table, "column": name, "kept": str(shown[name])} for name in names]
        self.log.info("%s to ask about", counted(len(questions), "new column"))
        return questions


class ColumnApprovalOperator(QuestionOperator):
    """Ask whether a field becomes a column; either answer ends the task well, and is recorded in `ops.columns`.

    If a person has refused the column meanwhile, the question is withdrawn, and its answer does not count.

    :param table: the bronze table.
    :param column: the name of the field.
    :param kept: the number of rows with the field in `_rescued`, and some values.
    """

    ui_color = "#e8d5e0"

    def __init__(self, *, table: str, column: str, kept: str = "", **kwargs: Any) -> None:
        place = f"`_rescued`: {quoted(kept)}." if kept else "`_rescued`."
        body = (
            f"Records of `{table}` have an undeclared field {quoted(column)}. Its values are kept in "
            f"{place}\n\n**Approve**: from the next batch on it is a text column; existing rows "
            f"keep it in `_rescued`. **Reject**: it stays in `_rescued`, and nobody is asked again."
        )
        super().__init__(subject=f"Make {column} a column of {table}?", body=body, **kwargs)
        self.table = table
        self.column = column

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record the answer.

        Raises:
            AirflowSkipException: the question was withdrawn.
            HITLTriggerEventError, HITLTimeoutError: as `ApprovalOperator`.
        """
        from millrace.control.ledger.new_columns import ColumnState, NewColumns

        answer = super().execute_complete(context, event)
        is_approved = answer["chosen_options"] == [self.APPROVE]
        state = ColumnState.APPROVED if is_approved else ColumnState.REFUSED
        who = (answer["responded_by_user"] or {}).get("name", "")
        columns = NewColumns(prepare_process().paths)
        refusals = columns.of(self.table, ColumnState.REFUSED)
        refused = next((column for column in refusals if column.name == self.column), None)
        if refused and refused.run_id != context["run_id"]:
            raise AirflowSkipException(
                f"{self.table}: {self.column} was refused by {refused.said_by} at {refused.since:{MINUTE}} UTC, "
                "which withdrew this question\n"
                f"To make it a column after all: lakehouse columns {self.table} --approve {self.column}"
            )
        columns.record(state, self.table, [self.column], run_id=context["run_id"], said_by=who)
        self.log.info("%s: %s is %s by %s", self.table, self.column, state, who or "the default")
        return answer

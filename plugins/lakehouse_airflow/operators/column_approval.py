"""Asks people about new columns, and writes down what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from include.paths import LakehousePaths
from lakehouse_airflow.hooks.store_access import task_settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.control.ledger.new_columns import NewColumn


class OpenQuestionsOperator(BaseOperator):
    """Find the new columns that nobody was asked about; in a run by hand, all about which nobody has decided.

    A second run that starts at the same time finds none of those that this one asks about.
    """

    def execute(self, context: Context) -> list[dict[str, str]]:
        """The arguments of a `ColumnApprovalOperator` each."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from include.catalog import load_catalog
        from include.contracts.spec.table_spec import BronzeSpec
        from include.control.ledger.new_columns import OPEN, ColumnState, NewColumns
        from include.control.quarantine.rescued import rescued_fields

        settings, run = task_settings(), context["dag_run"]
        paths = LakehousePaths(settings.root)
        columns = NewColumns(paths)
        questions: list[dict[str, str]] = []
        for spec in load_catalog(settings.tables).specs.values():
            if isinstance(spec, BronzeSpec) and spec.asks_for_columns:
                names = [one.name for one in columns.of(spec.table, *OPEN) if _is_to_ask(one, run)]
                columns.record(ColumnState.ASKED, spec.table, names, run_id=run.run_id)
                kept = rescued_fields(paths.table(spec.table), names)
                questions += [{"table": spec.table, "column": name, "kept": str(kept[name])} for name in names]
        self.log.info("%s new columns to ask about", len(questions) or "no")
        return questions


class ColumnApprovalOperator(ApprovalOperator):
    """Ask whether a field becomes a column; either answer ends the task well, and is written to `ops.columns`.

    The answer to a question that was withdrawn, since somebody has refused the column meanwhile, does not count.

    :param table: the bronze table.
    :param column: the name of the field.
    :param kept: what `_rescued` holds of it: the rows, and some values.
    """

    ui_color = "#e8d5e0"

    def __init__(self, *, table: str, column: str, kept: str = "", **kwargs: Any) -> None:
        held = f"`_rescued`: {kept}" if kept else "`_rescued`"
        body = (
            f"Records of `{table}` have a field `{column}` that no column is declared for. Its values are kept in "
            f"{held}.\n\n**Approve**: from the next batch on it is a column, as text; rows that are there already "
            f"keep it in `_rescued`. **Reject**: it stays in `_rescued`, and nobody is asked again."
        )
        super().__init__(subject=f"Make {column} a column of {table}?", body=body, **kwargs)
        self.table = table
        self.column = column

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Write down the answer.

        Raises:
            AirflowSkipException: the question was withdrawn.
            HITLTriggerEventError, HITLTimeoutError: as `ApprovalOperator`.
        """
        from include.control.ledger.new_columns import ColumnState, NewColumns

        answer = super().execute_complete(context, event)
        is_approved = answer["chosen_options"] == [self.APPROVE]
        state = ColumnState.APPROVED if is_approved else ColumnState.REFUSED
        who = (answer["responded_by_user"] or {}).get("name", "")
        columns = NewColumns(LakehousePaths(task_settings().root))
        refused = next((one for one in columns.of(self.table, ColumnState.REFUSED) if one.name == self.column), None)
        if refused and refused.run_id != context["run_id"]:
            told = f"{self.table}: {self.column} was refused by {refused.said_by} at {refused.since:%Y-%m-%d %H:%M} UTC"
            raise AirflowSkipException(
                f"{told}, which withdrew this question\n"
                f"To make it a column after all: lakehouse columns {self.table} --approve {self.column}"
            )
        columns.record(state, self.table, [self.column], run_id=context["run_id"], said_by=who)
        self.log.info("%s: %s is %s by %s", self.table, self.column, state, who or "the default")
        return answer


def _is_to_ask(column: NewColumn, run: Any) -> bool:
    from include.control.ledger.new_columns import ColumnState

    # A task that is tried again asks what it was about to ask.
    is_new = column.state is ColumnState.PROPOSED or column.run_id == run.run_id
    return is_new or run.run_type == "manual"

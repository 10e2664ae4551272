"""What becomes of the values that fit no declared column of a bronze table, by its spec's `on_drift`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.job.findings import RescuedValues
from include.contracts.job.report import JobReport
from include.contracts.spec.column_spec import ColumnSpec
from include.contracts.spec.table_spec import BronzeSpec
from include.contracts.spec.values import NAME
from include.control.ledger.new_columns import ColumnState
from include.errors import BadInputError, MillraceError
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.drift import drift_of, new_fields, refuse_drift, refuse_new_fields
from spark_jobs.transforms.records import RESCUED

MOST_NEW_COLUMNS = 100
"""More new fields than that at once are rather values that a source writes in the place of names."""

BY_POLICY = "on_drift: evolve"


class NewColumnsError(MillraceError):
    """Raised when a write met fields that become columns: they are recorded, and the batch is to be planned again."""


class ColumnDrift:
    """The policy of one bronze table.

    Attributes:
        new: columns that this run has added, or proposed.
    """

    def __init__(self, context: JobContext, declared: BronzeSpec) -> None:
        self._context = context
        self._declared = declared
        self.new: list[str] = []

    def effective_spec(self) -> BronzeSpec:
        """The spec with the columns that its table took on since it was written, all of them strings."""
        taken_on = self._names(ColumnState.APPROVED) if self._evolves else []
        columns = {**{name: ColumnSpec() for name in taken_on}, **self._declared.columns}
        in_order = dict.fromkeys([*self._declared.columns, *taken_on])
        return self._declared.model_copy(update={"columns": {name: columns[name] for name in in_order}})

    def rescued(self, spec: BronzeSpec, source: Column) -> Column:
        """`_rescued` as it is stored; reading it fails at the first record that the policy does not take as it is."""
        if spec.on_drift == "fail":
            return refuse_drift(source)
        if self._evolves and spec.evolve == "auto":
            return refuse_new_fields(source, self._known(spec))
        return F.col(RESCUED)

    def adopt(self, error: Exception, spec: BronzeSpec, records: DataFrame) -> None:
        """Take on the new fields of all `records`, where a write failed because of one.

        Raises:
            NewColumnsError: they are recorded, and the next plan counts them as columns.
            BadInputError: they are too many to be names.
        """
        if not self._evolves or drift_of(error) is None:
            return
        fields = records.select(F.explode(new_fields(self._known(spec))).alias("name")).distinct()
        names = sorted(row["name"] for row in fields.limit(MOST_NEW_COLUMNS + 1).collect())
        if not names:
            return
        if len(names) > MOST_NEW_COLUMNS:
            raise BadInputError(_too_many_message(spec.table, names)) from error
        self._record(ColumnState.APPROVED, names, BY_POLICY)
        raise NewColumnsError(f"{spec.table}: new columns: {', '.join(names)}") from error

    def propose(self, spec: BronzeSpec, rescued: Iterable[RescuedValues]) -> None:
        """Where people are asked, write down the new fields of a batch; its rows hold them in `_rescued`."""
        if not spec.needs_column_approval:
            return
        names = [one.field for one in rescued if re.fullmatch(NAME, one.field)]
        known = {*spec.columns, *self._names()}
        # What a source writes in the place of names would be asked for without end.
        self._record(ColumnState.PROPOSED, [name for name in names if name not in known][:MOST_NEW_COLUMNS])

    def ended(self, report: JobReport) -> JobReport:
        """The report with the columns that came up, and what to do about them."""
        if not self.new:
            return report
        names = ", ".join(self.new)
        note = f"new columns, as text: {names}. Declare them in the spec before a later layer reads them"
        if self._declared.needs_column_approval:
            note = (
                f"fields that no column is declared for: {names}. Their values are in {RESCUED}; the DAG "
                f"column_approvals asks whether they become columns, or: lakehouse columns {report.table}"
            )
        details = {**report.details, "new_columns": self.new}
        return report.model_copy(update={"details": details, "notes": (*report.notes, note)})

    @property
    def _evolves(self) -> bool:
        return self._declared.on_drift == "evolve"

    def _known(self, spec: BronzeSpec) -> list[str]:
        """Names that never become a new column: they are one, or somebody refused it."""
        return [*spec.columns, *self._names(ColumnState.REFUSED)]

    def _names(self, *states: ColumnState) -> list[str]:
        return [column.name for column in self._context.records.new_columns.of(self._declared.table, *states)]

    def _record(self, state: ColumnState, names: Sequence[str], said_by: str = "") -> None:
        run_id = self._context.args.run_id
        self._context.records.new_columns.record(state, self._declared.table, names, run_id=run_id, said_by=said_by)
        self.new += names


def _too_many_message(table: str, names: Sequence[str]) -> str:
    return (
        f"{table}: the records bring more than {MOST_NEW_COLUMNS} fields that no column is declared for "
        f"({', '.join(names[:5])} and so on): these look like values in the place of names\nNothing was loaded: set "
        "on_drift: rescue, or have the source say them otherwise."
    )

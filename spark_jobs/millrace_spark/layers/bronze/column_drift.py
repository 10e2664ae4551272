"""Handle the values that fit no declared column of a bronze table, as its spec's `on_drift` says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import RescuedValues
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.common_settings import ColumnSpec
from millrace.contracts.spec.record_fields import fields_of
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.ledger.new_columns import ColumnState
from millrace.errors import BadInputError, MillraceError
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.drift import NEW_NAME, drift_error, drift_of, new_fields
from millrace_spark.transforms.records import RESCUED

MAX_NEW_COLUMNS = 100
"""If a batch has more new fields, they are probably values that the source writes as field names."""

BY_POLICY = "on_drift: evolve"


class NewColumnsError(MillraceError):
    """Raised when a batch has fields that become columns: they are recorded, and the batch must be planned again."""


class ColumnDrift:
    """Apply `on_drift` to one bronze table.

    Attributes:
        new: columns that this run has added or proposed.
    """

    def __init__(self, context: JobContext, declared: BronzeSpec) -> None:
        self._context = context
        self._declared = declared
        self.new: list[str] = []

    def effective_spec(self) -> BronzeSpec:
        """Return the spec with the columns that drift has added to its table, all of them strings."""
        added = self._names(ColumnState.APPROVED) if self._evolves else []
        columns = {**{name: ColumnSpec() for name in added}, **self._declared.columns}
        in_order = dict.fromkeys([*self._declared.columns, *added])
        return self._declared.model_copy(update={"columns": {name: columns[name] for name in in_order}})

    def rescued(self, spec: BronzeSpec, source: Column) -> Column:
        """Return `_rescued` as it is stored; the read fails at the first record that the policy does not accept."""
        error = drift_error(source, shows_values=not self._context.restricted(spec.table))
        if spec.on_drift == "fail":
            return F.when(F.col(RESCUED).isNotNull(), error)
        if self._evolves and spec.evolve == "auto":
            has_new_fields = F.size(new_fields(self._known_names(spec))) > 0
            return F.when(has_new_fields, error).otherwise(F.col(RESCUED))
        return F.col(RESCUED)

    def adopt(self, error: Exception, spec: BronzeSpec, records: DataFrame) -> None:
        """Add the new fields of `records` as columns, if a write failed because of a new field.

        Raises:
            NewColumnsError: the columns are recorded, and the next plan has them.
            BadInputError: there are too many new fields.
        """
        if not self._evolves or drift_of(error) is None:
            return
        fields = records.select(F.explode(new_fields(self._known_names(spec))).alias("name")).distinct()
        names = sorted(row["name"] for row in fields.limit(MAX_NEW_COLUMNS + 1).collect())
        if not names:
            return
        if len(names) > MAX_NEW_COLUMNS:
            raise BadInputError(
                f"{spec.table}: the records have more than {MAX_NEW_COLUMNS} fields that no column is declared for "
                f"({', '.join(names[:5])} and so on)",
                "These look like values that are written as field names. Nothing was loaded: set on_drift: rescue, or "
                "have the source write them as values.",
            ) from error
        self._record(ColumnState.APPROVED, names, BY_POLICY)
        raise NewColumnsError(f"{spec.table}: new columns: {', '.join(names)}") from error

    def propose(self, spec: BronzeSpec, rescued: Iterable[RescuedValues]) -> None:
        """Record the new fields of a batch as proposed columns, if a person decides about columns."""
        if not spec.needs_column_approval:
            return
        names = [rescued_field.field for rescued_field in rescued if re.fullmatch(NEW_NAME, rescued_field.field)]
        existing = {*spec.columns, *fields_of(spec).values(), *self._names()}
        # If a source writes values as field names, there is no end of new names.
        self._record(ColumnState.PROPOSED, [name for name in names if name not in existing][:MAX_NEW_COLUMNS])

    def add_to_report(self, report: JobReport) -> JobReport:
        """Return the report with the new columns, and what to do about them."""
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

    def _known_names(self, spec: BronzeSpec) -> list[str]:
        """Return the names that cannot become a new column: those of columns, of their fields, and those refused."""
        same = str.lower if spec.source.field_names == "any_case" else str
        return [*spec.columns, *map(same, fields_of(spec).values()), *self._names(ColumnState.REFUSED)]

    def _names(self, *states: ColumnState) -> list[str]:
        return [column.name for column in self._context.ops.new_columns.of(self._declared.table, *states)]

    def _record(self, state: ColumnState, names: Sequence[str], said_by: str = "") -> None:
        run_id = self._context.args.run_id
        self._context.ops.new_columns.record(state, self._declared.table, names, run_id=run_id, said_by=said_by)
        self.new += names

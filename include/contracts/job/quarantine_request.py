"""What a person asks of quarantined rows: which of them, what is mended in them, who wants it and why.

It travels to the driver as a file beside the report: rows and SQL are no text for a command line. SQL comes from the
command line alone, and is checked before Spark reads it (`include.sql.closed_expression`); a form has operations.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from include.contracts.interval import Instant
from include.contracts.job.column_fix import ColumnFix
from include.contracts.job.request_file import RequestFile
from include.contracts.row_status import PENDING, RowStatus


class RowFilter(BaseModel):
    """Which quarantined rows of a table are meant; every condition that is stated must hold.

    Attributes:
        ids: only rows with one of these ids; any for none.
        reason: only rows with a reason that has this text in it.
        starts: only rows of the intervals that start so; of any for none.
        statuses: only rows that stand so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ids: tuple[str, ...] = ()
    reason: str = ""
    starts: tuple[Instant, ...] = ()
    statuses: tuple[RowStatus, ...] = PENDING


class QuarantineRequest(RequestFile):
    """What is to become of quarantined rows.

    Attributes:
        rows: which rows.
        assign: column -> Spark SQL over the columns of the row as it was received; all see the values from before.
        fixes: column -> one of the operations that a form offers, likewise.
        edited: rows that somebody has edited, as JSON lines `{"id": ..., "record": {column: value}}`; a column that is
            left out keeps its value.
        said_by: who asks.
        why: the reason, for those who look at the row's history.
    """

    rows: RowFilter = RowFilter()
    assign: dict[str, str] = Field(default_factory=dict)
    fixes: dict[str, ColumnFix] = Field(default_factory=dict)
    edited: str = ""
    said_by: str = ""
    why: str = ""

    @property
    def mends(self) -> bool:
        """Whether rows are changed, rather than tried again as they are."""
        return bool(self.assign or self.fixes or self.edited)

    @property
    def how(self) -> str:
        """What is changed, in one line.

        >>> QuarantineRequest(assign={"amount": "abs(amount)"}).how
        'amount = abs(amount)'
        """
        assigned = [f"{column} = {sql}" for column, sql in self.assign.items()]
        fixed = [f"{column} {fix}" for column, fix in self.fixes.items()]
        return "; ".join([*assigned, *fixed]) or ("edited" if self.edited else "")

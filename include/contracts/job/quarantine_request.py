"""A person's request for quarantined rows: the rows, their fixes, the person and the reason.

Only the command line takes SQL, which is checked before Spark reads it (`include.sql.closed_expression`). A form offers
a closed list of operations instead.
"""

from __future__ import annotations

from pydantic import Field

from include.contracts.interval import Instant
from include.contracts.job.column_fix import ColumnFix
from include.contracts.job.request_file import RequestFile
from include.contracts.row_status import PENDING, RowStatus
from include.contracts.strict_model import StrictModel


class RowFilter(StrictModel):
    """A filter of the quarantined rows of a table; a row must meet every stated condition.

    Attributes:
        ids: only rows with one of these ids; empty for any.
        reason: only rows with a reason that contains this text.
        starts: only rows of the intervals with these starts; empty for any.
        statuses: only rows with one of these statuses.
    """

    ids: tuple[str, ...] = ()
    reason: str = ""
    starts: tuple[Instant, ...] = ()
    statuses: tuple[RowStatus, ...] = PENDING


class QuarantineRequest(RequestFile):
    """A request to fix, replay or discard quarantined rows.

    Attributes:
        rows: the rows.
        assign: column -> Spark SQL over the columns of the row as received; all expressions read the old values.
        fixes: column -> an operation of the form, which also reads the old values.
        edited: edited rows, as JSON lines `{"id": ..., "record": {column: value}}`; a column that is left out keeps its
            value.
        said_by: the person who asks.
        why: the reason, for the row's history.
    """

    rows: RowFilter = RowFilter()
    assign: dict[str, str] = Field(default_factory=dict)
    fixes: dict[str, ColumnFix] = Field(default_factory=dict)
    edited: str = ""
    said_by: str = ""
    why: str = ""

    @property
    def has_fixes(self) -> bool:
        """Whether the request changes rows; else they are retried unchanged."""
        return bool(self.assign or self.fixes or self.edited)

    @property
    def how(self) -> str:
        """The changes, in one line.

        >>> QuarantineRequest(assign={"amount": "abs(amount)"}).how
        'amount = abs(amount)'
        """
        assignments = [f"{column} = {sql}" for column, sql in self.assign.items()]
        fixes = [f"{column} {fix}" for column, fix in self.fixes.items()]
        return "; ".join([*assignments, *fixes]) or ("edited" if self.edited else "")

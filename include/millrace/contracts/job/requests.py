"""The requests of a person to a job, as files: rows, SQL and reasons do not fit on a command line.

Only the command line takes SQL, which is checked before Spark reads it (`millrace.sql.closed_expression`). A form
offers a closed list of operations instead.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field

from millrace.contracts.interval import Instant
from millrace.contracts.job.column_fix import ColumnFix, Copy
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.strict_model import StrictModel


class FormAction(StrEnum):
    """What the form of the quarantine does with what it selects."""

    REPLAY = "replay rows"
    DISCARD = "discard rows"
    REOPEN = "reopen rows"
    GIVE_UP = "give up a landing file"


class RequestFile(StrictModel):
    """A request that a driver reads from a file."""

    @property
    def has_values(self) -> bool:
        """Whether it has values of rows, so that its file is deleted after the job."""
        return False

    def save(self, path: Path) -> Path:
        """Write the request to `path`, and return `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the request at `path`."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


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
    def has_values(self) -> bool:
        """Whether somebody has typed values, or has edited rows."""
        return self.has_fixes

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, to change or to copy them; not those of edited rows.

        >>> QuarantineRequest(fixes={"amount": Copy(value="price")}).columns
        ('amount', 'price')
        """
        copied = (fix.value for fix in self.fixes.values() if isinstance(fix, Copy))
        return (*self.assign, *self.fixes, *copied)

    @property
    def how(self) -> str:
        """The changes, in one line.

        >>> QuarantineRequest(assign={"amount": "abs(amount)"}).how
        'amount = abs(amount)'
        """
        assignments = [f"{column} = {sql}" for column, sql in self.assign.items()]
        fixes = [f"{column} {fix}" for column, fix in self.fixes.items()]
        return "; ".join([*assignments, *fixes]) or ("edited" if self.edited else "")


class RebuildRequest(RequestFile):
    """A request to rebuild a table.

    Attributes:
        downstream: whether to rebuild also the tables that read it, directly or not.
        allow_deletes: whether any interval may delete more absent keys than `max_deleted_percent`; deletes that were
            approved for the table in use are allowed in any case.
        allow_missing: whether to switch although landing files whose rows the table holds are missing now.
        allow_refused: whether the version of the new table that its gate has refused passes; the dry run names it.
        cancel: give up the rebuild in progress instead; tables that were switched already stay switched.
        undo: restore the rows that the last rebuild replaced instead; with `downstream` those of all tables that it
            replaced.
        plan: what a person has approved, in the words of a dry run; the rebuild is refused if it would do anything
            else. Empty if nobody was asked.
        said_by: the person who asks.
        why: the reason, for the history of the table.
    """

    downstream: bool = False
    allow_deletes: bool = False
    allow_missing: bool = False
    allow_refused: bool = False
    cancel: bool = False
    undo: bool = False
    plan: str = ""
    said_by: str = ""
    why: str = ""


class ErasureRequest(RequestFile):
    """A request to delete the rows of subjects from all tables with their keys.

    Nobody else may read its file.

    Attributes:
        erasure: the id of the erasure.
        request: the name of the request elsewhere.
        kind: the kind of the subjects.
        keys: their keys, as text.
    """

    erasure: str
    request: str
    kind: str
    keys: tuple[str, ...]

    @property
    def has_values(self) -> bool:
        """Always: the keys."""
        return True

    def save(self, path: Path) -> Path:
        """Write the request to `path`, for the reader's eyes alone, and return `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(self.model_dump_json())
        return path


class RepairRequest(RequestFile):
    """A request to delete rows of a table, or to replace them.

    Attributes:
        where: the condition that the rows fulfil, as Spark SQL.
        source: `table` or `table@version`, whose rows replace them; empty to delete them.
        plan: the id of what a person was shown; empty for a dry run.
        said_by: the person who asks, and who approved it.
        why: the reason, for those who look at it later.
    """

    where: str
    source: str = ""
    plan: str = ""
    said_by: str = ""
    why: str = ""

"""The typed errors of Millrace, each with the outcome and the exit code of a job that it ends.

The first line of a message tells the person on call what happened; further lines say what to do next.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # every command loads this module, also those that print help alone
    from millrace.contracts.job.contention import LeaseWait


class Outcome(StrEnum):
    """How a job ended; the operator and the CLI decide only from this word."""

    COMMITTED = "committed"
    NO_OP = "no_op"
    NOT_READY = "not_ready"
    CONFLICT = "conflict"
    GATE_FAILED = "gate_failed"
    BAD_INPUT = "bad_input"
    BAD_SPEC = "bad_spec"
    SPARK_UNAVAILABLE = "spark_unavailable"
    DISK_FULL = "disk_full"
    INCONSISTENT = "inconsistent"
    DELETES_REFUSED = "deletes_refused"
    WRONG_RUN = "wrong_run"
    FAILED = "failed"


class ExitCode(IntEnum):
    """The process exit code of every job and CLI command, one per kind of ending."""

    OK = 0
    FAILED = 1
    WRONG_USAGE = 2
    BAD_SPEC = 10
    BAD_INPUT = 11
    NOT_READY = 12
    CONFLICT = 13
    GATE_FAILED = 14
    SPARK_UNAVAILABLE = 15
    DISK_FULL = 16
    INCONSISTENT = 17
    DELETES_REFUSED = 18
    WRONG_RUN = 19


HOPELESS = frozenset(
    {Outcome.GATE_FAILED, Outcome.DELETES_REFUSED, Outcome.BAD_INPUT, Outcome.BAD_SPEC, Outcome.INCONSISTENT}
)
"""Outcomes that need a person first, because another try would end the same."""


class MillraceError(Exception):
    """The base of every error that Millrace raises on purpose.

    Args:
        cause: what happened, in one short line that names file, table, key or value.
        ways_out: what to do about it, one line each.

    >>> print(MillraceError("silver.orders: no version is certified", "Run its gate first."))
    silver.orders: no version is certified
    Run its gate first.
    """

    outcome = Outcome.FAILED
    exit_code = ExitCode.FAILED

    def __init__(self, cause: str, *ways_out: str) -> None:
        super().__init__("\n".join((cause, *ways_out)))


class SpecError(MillraceError):
    """Raised when a table spec is wrong; the message names file, line, key, value and the likely fix."""

    outcome = Outcome.BAD_SPEC
    exit_code = ExitCode.BAD_SPEC


class UnknownNameError(SpecError):
    """Raised when a person names a table or a domain that no spec has, or that the command does not support."""

    exit_code = ExitCode.WRONG_USAGE


class BadInputError(MillraceError):
    """Raised when source data cannot be loaded: a broken file, or a table on disk that does not fit its spec."""

    outcome = Outcome.BAD_INPUT
    exit_code = ExitCode.BAD_INPUT


class MisfitError(BadInputError):
    """Raised when a table does not fit its spec, and only a rebuild makes it fit."""


class QueryError(MillraceError):
    """Raised when a query, or what a reader asked for, is wrong or not allowed."""

    exit_code = ExitCode.WRONG_USAGE


class ProjectError(MillraceError):
    """Raised when a command needs a project and finds none, or cannot read its settings."""

    exit_code = ExitCode.WRONG_USAGE


class ApprovalError(MillraceError):
    """Raised when a command would do what a second person has to approve."""

    exit_code = ExitCode.WRONG_USAGE


class OverrideError(BadInputError):
    """Raised when there is no refusal to override, or the refused version is not the newest."""


class RestoreError(MillraceError):
    """Raised when the rows before a refused version cannot be restored: none was certified, or a newer one exists."""


class RepairError(BadInputError):
    """Raised when a table cannot be repaired as asked, or a repair would do something else than what was shown."""


class NotReadyError(MillraceError):
    """Raised when the source of an interval has not arrived yet; a later retry can succeed."""

    outcome = Outcome.NOT_READY
    exit_code = ExitCode.NOT_READY


class StorageError(MillraceError):
    """Raised when a store or a broker refuses this process: credentials, permissions, a wrong name."""


class NotDeliveredError(NotReadyError):
    """Raised when the landing folder of an interval does not exist."""


class ConflictError(MillraceError):
    """Raised when a batch lost to concurrent writers until its retry budget was spent."""

    outcome = Outcome.CONFLICT
    exit_code = ExitCode.CONFLICT


class LeaseLostError(ConflictError):
    """Raised when a lease was not free in time.

    Attributes:
        waited: the wait, with the holders of the lease.
    """

    def __init__(self, message: str, waited: LeaseWait) -> None:
        super().__init__(message)
        self.waited = waited


class GateFailedError(MillraceError):
    """Raised when a gate refused a table version; the certified version stays the same."""

    outcome = Outcome.GATE_FAILED
    exit_code = ExitCode.GATE_FAILED


class SparkUnavailableError(MillraceError):
    """Raised when there is no Spark to use: the server does not answer, or nothing is installed."""

    outcome = Outcome.SPARK_UNAVAILABLE
    exit_code = ExitCode.SPARK_UNAVAILABLE


class SparkDiedError(SparkUnavailableError):
    """Raised when the Spark server died, or was restarted, while it worked for this process."""


class DiskFullError(MillraceError):
    """Raised when a disk has no space left for a write; after space is freed, the same run continues."""

    outcome = Outcome.DISK_FULL
    exit_code = ExitCode.DISK_FULL


class DeletesRefusedError(MillraceError):
    """Raised when a batch would delete more absent keys than the spec allows without approval."""

    outcome = Outcome.DELETES_REFUSED
    exit_code = ExitCode.DELETES_REFUSED


class TornLogError(MillraceError):
    """Raised when a table's log or ledger does not continue from its last resolved state; Millrace never guesses."""

    outcome = Outcome.INCONSISTENT
    exit_code = ExitCode.INCONSISTENT


class ConservationError(MillraceError):
    """Raised when the row counts of a batch do not add up to the rows that it read."""

    outcome = Outcome.INCONSISTENT
    exit_code = ExitCode.INCONSISTENT


def first_line(error: Exception) -> str:
    r"""Return the first line of a library's error, cut to 300 characters.

    >>> first_line(ValueError("no such column\n  at line 3"))
    'no such column'
    """
    return str(error).partition("\n")[0][:300]

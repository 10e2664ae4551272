"""The decision of a person to go on without a landing file that could not be loaded."""

from __future__ import annotations

from dataclasses import replace

from millrace.control.landing.file_states import FileState
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.errors import BadInputError


def give_up(table: str, table_id: str, file: FileState, by: str, reason: str, ledger: Ledger) -> None:
    """Record that a person gives a file up, and why.

    Raises:
        BadInputError: no reason is given, or the last attempt to load the file has not failed.
    """
    if not reason.strip():
        raise BadInputError(f"why should runs go on without {file.path}?", "State the reason.")
    failure = ledger.failed_files(table, table_id).get(file.path)
    if failure is None:
        raise BadInputError(f"{file.path} is {file.status}: only a file that could not be loaded can be given up")
    fact = replace(failure.file, defect=f"by {by}: {reason} ({failure.file.defect})")
    ledger.record_files(FileEvent.GIVEN_UP, table, table_id, file.interval, [fact])

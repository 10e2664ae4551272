"""Commands that do at once what Airflow does only after a second person has approved it."""

from __future__ import annotations

from enum import StrEnum
from getpass import getuser

from millrace.cli.output import show
from millrace.errors import ApprovalError
from millrace.settings import Settings


class AskingDag(StrEnum):
    """The DAG whose form asks a second person."""

    OVERRIDE = "gate_override"
    DELETES = "delete_approval"
    REBUILD = "table_rebuild"
    REPAIR = "table_repair"
    FIX = "quarantine_replay"
    VACUUM = "table_vacuum"
    ERASE = "erase_subject"


def decided_alone(dag: AskingDag, settings: Settings) -> str:
    """Return, and print, in whose name a command acts: records keep that nobody else was asked.

    Raises:
        ApprovalError: this installation wants a second person to be asked (`LAKEHOUSE_SECOND_PERSON`).
    """
    if settings.second_person:
        raise ApprovalError(
            "a second person must approve this (LAKEHOUSE_SECOND_PERSON), and a command asks nobody: nothing was done",
            f"In Airflow, trigger the DAG {dag}: its form asks for the same, and then somebody else for the approval.",
        )
    show(f"In the name of {alone()}.")
    return alone()


def alone() -> str:
    """Return the person of a command, and that nobody else was asked."""
    return f"{getuser()} (nobody else was asked)"

"""`lakehouse repair drop` and `undrop`: the plan in words, and its execution."""

from __future__ import annotations

from getpass import getuser

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show
from millrace.cli.runs.deciding_alone import alone
from millrace.cli.selection import new_run_id
from millrace.clock import utc_now
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Repair
from millrace.control.ops_tables import OpsTables
from millrace.errors import ApprovalError
from millrace.repair.dropping import drop, plan_drop, undrop
from millrace.settings import Settings


def show_drop(table: str, settings: Settings, *, as_json: bool) -> None:
    """Show what a drop would take away, and the command that does exactly that.

    Raises:
        MillraceError: as `plan_drop`.
    """
    plan = plan_drop(table, command_catalog(settings.tables), OpsTables(settings.paths))
    lines = (*plan.lines, f"To do exactly this: {plan.command} --why ...")
    show_listing([plan.facts], lambda: "\n".join(lines), as_json=as_json)


def execute_drop(table: str, plan_id: str, why: str, settings: Settings) -> None:
    """Drop a table as shown under the id.

    Raises:
        ApprovalError: this installation wants a second person to be asked.
        MillraceError: as `drop`.
    """
    if settings.second_person:
        cause = f"{table}: a second person must approve a drop (LAKEHOUSE_SECOND_PERSON), and a command asks nobody"
        raise ApprovalError(cause, "No form of Airflow asks for it: let an administrator of the installation do it.")
    catalog, run_id = command_catalog(settings.tables), new_run_id(utc_now())
    decided = Repair(id=plan_id, said_by=alone(), why=why)
    dropped = drop(table, decided, run_id, catalog, OpsTables(settings.paths), _leases(settings, run_id))
    show(f"{dropped.words}.")


def bring_back(table: str, dropped_id: str, why: str, settings: Settings) -> None:
    """Bring a dropped table back; its id may be empty if no other of this name was dropped.

    Raises:
        MillraceError: as `undrop`.
    """
    ops, run_id = OpsTables(settings.paths), new_run_id(utc_now())
    undrop(table, getuser(), why, run_id, ops, _leases(settings, run_id), dropped_id=dropped_id)
    certified = ops.gates.certified(table)
    readers = "No version is certified." if certified is None else f"Readers use version {certified}."
    show(f"{table} is back as it was. {readers}")


def _leases(settings: Settings, run_id: str) -> Leases:
    return lakehouse_leases(settings.paths, run_id, DEFAULT_CONFLICTS.wait_for_lease)

"""`lakehouse repair restore`: the plan in words, and its execution."""

from __future__ import annotations

from datetime import UTC, datetime

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.selection import new_run_id
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Repair
from millrace.control.ops_tables import OpsTables
from millrace.repair.plan_text import plan_lines
from millrace.repair.restoring import asked_restore
from millrace.settings import Settings


def show_restore(table: str, to: str, settings: Settings, *, no_reload: bool, as_json: bool) -> None:
    """Show what a restore would change, and the command that does exactly that.

    Raises:
        MillraceError: as `asked_restore`, `plan_restore`.
    """
    catalog, ops = command_catalog(settings.tables), OpsTables(settings.paths)
    plan = asked_restore(table, to, catalog, settings.paths, no_reload=no_reload).plan(catalog, ops)
    lines = (*plan_lines(plan), f"To do exactly this: {plan.command} --why ...")
    show_listing([plan.facts], lambda: "\n".join(lines), as_json=as_json)


def execute_restore(table: str, to: str, plan_id: str, why: str, settings: Settings, *, no_reload: bool) -> None:
    """Restore as shown under the id, and show what follows.

    Raises:
        ApprovalError: a second person has to approve it.
        MillraceError: as `asked_restore`, `RestoreRequest.execute`.
    """
    catalog, ops, run_id = command_catalog(settings.tables), OpsTables(settings.paths), new_run_id(datetime.now(UTC))
    asked = asked_restore(table, to, catalog, settings.paths, no_reload=no_reload)
    person = decided_alone(AskingDag.REPAIR, settings)
    leases = lakehouse_leases(settings.paths, run_id, asked.spec.conflicts.wait_for_lease)
    winner = asked.execute(Repair(id=plan_id, said_by=person, why=why), run_id, catalog, ops, leases)
    show(
        f"{table}: version {winner.version} has the rows of version {asked.version}.",
        f"Readers use version {ops.gates.certified(table)}.",
        "Run the tables that read it. What they cannot follow, they say, with the rebuild that helps.",
    )

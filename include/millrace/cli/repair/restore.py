"""`lakehouse repair restore`: the plan in words, and its execution."""

from __future__ import annotations

from datetime import UTC, datetime

from millrace.catalog import Catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.selection import new_run_id
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Repair
from millrace.control.ops_tables import OpsTables
from millrace.repair.plan_text import plan_lines
from millrace.repair.restoring import RestoreRequest
from millrace.settings import Settings


def show_restore(asked: RestoreRequest, catalog: Catalog, settings: Settings, *, as_json: bool) -> None:
    """Show what a restore would change, and the command that does exactly that.

    Raises:
        MillraceError: as `plan_restore`.
    """
    plan = asked.plan(catalog, OpsTables(settings.paths))
    lines = (*plan_lines(plan), f"To do exactly this: {plan.command} --why ...")
    show_listing([plan.facts], lambda: "\n".join(lines), as_json=as_json)


def execute_restore(asked: RestoreRequest, plan_id: str, why: str, catalog: Catalog, settings: Settings) -> None:
    """Restore as shown under the id, and show what follows.

    Raises:
        ApprovalError: a second person has to approve it.
        MillraceError: as `RestoreRequest.execute`.
    """
    table, ops, run_id = asked.spec.table, OpsTables(settings.paths), new_run_id(datetime.now(UTC))
    person = decided_alone(AskingDag.REPAIR, settings)
    leases = lakehouse_leases(settings.paths, run_id, asked.spec.conflicts.wait_for_lease)
    winner = asked.execute(Repair(id=plan_id, said_by=person, why=why), run_id, catalog, ops, leases)
    show(
        f"{table}: version {winner.version} has the rows of version {asked.version}.",
        f"Readers use version {ops.gates.certified(table)}.",
        "Run the tables that read it. What they cannot follow, they say, with the rebuild that helps.",
    )

"""Restores to any version, as a person makes them: by the id of what was shown."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from millrace.catalog import load_catalog
from millrace.contracts.restricted import NOTHING_RESTRICTED
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Repair
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.errors import RepairError
from millrace.repair.restoring import RestoreRequest
from tests.support.lakehouse import Lakehouse


def restore_any(lakehouse: Lakehouse, table: str, chance: Random) -> int | None:
    """Restore a table to one of the versions to which it can be, and return that; None if there is none."""
    catalog, ops = load_catalog(lakehouse.folder / "tables"), OpsTables(lakehouse.paths)
    newest = latest_version(lakehouse.paths.table(table))
    for version in chance.sample(range(newest), newest):
        request = RestoreRequest(catalog.spec(table), version, False, NOTHING_RESTRICTED)
        try:
            plan = request.plan(catalog, ops)
        except RepairError:
            continue  # never certified, or with the same rows, or from before a rebuild
        decided = Repair(id=plan.id, said_by="ann", why="a wrong delivery")
        leases = lakehouse_leases(lakehouse.paths, "a repair", timedelta(seconds=5))
        assert request.execute(decided, "a repair", catalog, ops, leases).version == newest + 1
        return version
    return None

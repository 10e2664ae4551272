"""The reason why a table has no certified version. It stops the tables that read this table."""

from __future__ import annotations

from include.control.gates.gates import Gates
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.control.log.delta_log import latest_version
from include.paths import LakehousePaths


def missing_certificate_cause(table: str, gates: Gates, paths: LakehousePaths) -> str:
    """Return in one line why a table has no certified version: a refusal, or files that cannot be loaded."""
    if refusal := gates.first_refusal(table, above=-1):
        return refusal.refused.partition("\n")[0] or f"version {refusal.version} was refused"
    path = paths.table(table)
    if latest_version(path) < 0:
        return "it was never built"
    failures = Ledger(paths).failures(table, table_id(path))
    broken = [f"{file}: {failure.file.defect}" for file, failure in sorted(failures.items())]
    more = f" (and {len(broken) - 1} more files)" if len(broken) > 1 else ""
    return f"cannot load {broken[0]}{more}" if broken else "its gate has not checked it"

"""Whether maintenance has to verify a gold table: only rows that were not compared with their sources yet."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from millrace.catalog import Catalog
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.changes.spec_changes import Effect
from millrace.control.changes.table_diff import diff_of_values
from millrace.control.gates.verdicts import Verdicts
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.batch import Stream, Winner
from millrace.control.ops_tables import OpsTables


class Verified(StatePart):
    """The rows that a verification has compared without finding a difference.

    Attributes:
        version: the version that passed its gate with these rows.
        sources: source table -> the version from which the rows were computed; empty in records of an earlier Millrace.
    """

    version: int
    sources: dict[str, int] = Field(default_factory=dict)


def record_verified(table: str, verdicts: Verdicts, sources: Mapping[str, int], ops: OpsTables) -> None:
    """Record that the certified rows were compared with these versions of the sources, and do not differ."""
    verified = Verified(table_id=verdicts.table_id, version=verdicts.passed[-1].version, sources=dict(sources))
    ops.states.change(table, (Verified, lambda _: verified))


def why_not_due(spec: GoldSpec, catalog: Catalog, ops: OpsTables) -> str:
    """Return why maintenance has nothing to verify; empty if it has."""
    if whole := _why_whole(spec, catalog):
        return f"{spec.table}: each run computes all of it: {whole}"
    verdicts = ops.gates.verdicts(spec.table)
    if verdicts is None or verdicts.certified is None:
        return f"{spec.table} has no certified version to verify"
    version, wrong = verdicts.passed[-1].version, verdicts.found_wrong
    if wrong and wrong.version == version:
        return f"{spec.table}: a verification has found version {version} wrong already"
    verified = ops.states.read(spec.table, Verified)
    if verified and (verified.table_id, verified.version) == (verdicts.table_id, version):
        return f"{spec.table}: the rows of version {version} were verified already"
    batch = ops.ledger.last_recorded(spec.table, verdicts.table_id, Stream(spec.table).name, verdicts.certified)
    if batch is None:
        return f"{spec.table}: no batch has written version {verdicts.certified}, so that its sources are unknown"
    changes = changes_of_values(spec, batch, ops)
    return changes and f"{spec.table}: its spec has changed since version {batch.version}: {changes}"


def _why_whole(spec: GoldSpec, catalog: Catalog) -> str:
    """Return why no group of a table can be stale, unless its spec asks for a verification all the same."""
    if spec.query is None or spec.refresh_columns or spec.maintenance.verify is not None:
        return ""
    from millrace.specs.checks.sql import traced_refresh  # loads sqlglot, which takes half a second

    return traced_refresh(spec, catalog.specs).reason


def changes_of_values(spec: GoldSpec, batch: Winner, ops: OpsTables) -> str:
    """Return what has changed in the spec since a batch, if it gives the rows other values; else empty."""
    diff = diff_of_values(spec, batch, ops)
    changes = [change for change in diff.changes if change.effect in (Effect.REBUILD, Effect.RECOMPUTE)]
    if diff.unknown or changes or diff.computes_all_groups:
        return "; ".join(map(str, changes or diff.changes)) or "which change was not recorded"
    return ""

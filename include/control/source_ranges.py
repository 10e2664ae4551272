"""Which versions of its sources a silver or gold batch reads: (what the last batch consumed, what is certified now]."""

from __future__ import annotations

from include.contracts.table_spec import GoldSpec, SilverSpec
from include.control.batch import BatchSources, StreamPosition
from include.control.delta_log import commits_after
from include.control.gates import Gates
from include.errors import NotReadyError
from include.paths import LakehousePaths


def certified_sources(spec: SilverSpec | GoldSpec, gates: Gates) -> dict[str, int]:
    """source table -> the version that may be read.

    Raises:
        NotReadyError: a source has no certified version yet.
    """
    certified = {table: gates.certified(table) for table in spec.source_tables}
    if missing := [table for table, version in certified.items() if version is None]:
        msg = (
            f"{spec.table}: {', '.join(missing)} has no certified version yet. "
            "Run it and its gate first; if its gate refused it, that run says why."
        )
        raise NotReadyError(msg)
    return {table: version for table, version in certified.items() if version is not None}


def new_ranges(
    spec: SilverSpec | GoldSpec, paths: LakehousePaths, gates: Gates, position: StreamPosition | None
) -> dict[str, tuple[int | None, int]]:
    """source table -> (version consumed, certified version), for the sources whose rows changed in between."""
    consumed = (position.last_sources if position else BatchSources()).ranges
    ranges = {
        table: (consumed[table][1] if table in consumed else None, certified)
        for table, certified in certified_sources(spec, gates).items()
    }
    return {table: span for table, span in ranges.items() if _has_changes(table, span, paths)}


def _has_changes(table: str, span: tuple[int | None, int], paths: LakehousePaths) -> bool:
    after, upto = span
    if after is None:
        return True
    commits = commits_after(paths.table(table), after)
    return any(commit.changes_data for commit in commits if commit.version <= upto)

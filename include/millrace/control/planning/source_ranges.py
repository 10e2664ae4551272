"""The versions of its sources that a silver or gold batch reads: (consumed by the last batch, certified now]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile

from deltalake.exceptions import DeltaError

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id, table_id_at
from millrace.control.log.batch import BatchSources, PinnedTable, StreamPosition
from millrace.control.log.change_feed import changed_files, feed_spans
from millrace.control.log.delta_log import commit_file, commits_after, latest_version, remaining_commits
from millrace.control.log.stored_tables import open_table
from millrace.control.storage.stored_files import is_file
from millrace.errors import BadInputError, NotReadyError, TornLogError
from millrace.paths import LakehousePaths


def certified_sources(spec: SilverSpec | GoldSpec, gates: Gates, paths: LakehousePaths) -> dict[str, int]:
    """Return the certified version of each table that it reads, or that its references look into.

    Raises:
        NotReadyError: one of them has no certified version yet.
    """
    return _certified(spec, spec.upstream_tables, gates, paths)


def pin_references(spec: AnySpec, paths: LakehousePaths, gates: Gates) -> dict[str, PinnedTable]:
    """Return the tables that the references of a spec look into, at their certified versions.

    Raises:
        NotReadyError: one of them has no certified version yet, or a certified version that Delta cannot read.
    """
    certified = _certified(
        spec, [table for table in spec.upstream_tables if table not in spec.source_tables], gates, paths
    )
    for table, version in certified.items():
        _require_readable(spec.table, table, paths.table(table), version)
    return {
        table: PinnedTable(table_id=table_id(paths.table(table)), version=version)
        for table, version in certified.items()
    }


def _certified(spec: AnySpec, tables: Sequence[str], gates: Gates, paths: LakehousePaths) -> dict[str, int]:
    certified = {table: gates.certified(table) for table in tables}
    if missing := [table for table, version in certified.items() if version is None]:
        causes = [f"{table} has no certified version: {_why_uncertified(table, gates, paths)}" for table in missing]
        raise NotReadyError(f"{spec.table}: {'; '.join(causes)}", f"Run {' and '.join(missing)} first.")
    return {table: version for table, version in certified.items() if version is not None}


def _why_uncertified(table: str, gates: Gates, paths: LakehousePaths) -> str:
    """Return in one line why a table has no certified version: a refusal, or files that cannot be loaded."""
    if refusal := gates.first_refusal(table, above=-1):
        return refusal.refused.partition("\n")[0] or f"version {refusal.version} was refused"
    path = paths.table(table)
    if latest_version(path) < 0:
        return "it was never built"
    failures = Ledger(paths).failures(table, table_id(path))
    broken = [f"{file}: {failure.file.defect}" for file, failure in sorted(failures.items())]
    more = f" (and {counted(len(broken) - 1, 'more file')})" if len(broken) > 1 else ""
    return f"cannot load {broken[0]}{more}" if broken else "its gate has not checked it"


def pin_sources(
    spec: SilverSpec | GoldSpec, paths: LakehousePaths, gates: Gates, position: StreamPosition | None
) -> BatchSources:
    """Return the sources of a batch: from each source, the versions after the last batch up to the certified version.

    The tables that its references look into are pinned at their certified versions.

    Raises:
        NotReadyError: a source has no certified version yet, or a new certified version that Delta cannot read.
    """
    last = position.last_sources if position else BatchSources()
    certified = _certified(spec, spec.source_tables, gates, paths)
    ids = {table: table_id(paths.table(table)) for table in certified}
    ranges = {table: (last.consumed_version(table, ids[table]), upto) for table, upto in certified.items()}
    for table, (after, upto) in ranges.items():
        if after != upto:
            _require_readable(spec.table, table, paths.table(table), upto)
    return BatchSources(ranges=ranges, source_ids=ids, references=pin_references(spec, paths, gates))


def changed_ranges(
    spec: SilverSpec | GoldSpec, sources: BatchSources, paths: LakehousePaths
) -> dict[str, tuple[int | None, int]]:
    """Return the ranges with changed rows; also those with a full snapshot, which deletes all rows if it is empty."""
    by_batch = isinstance(spec, SilverSpec) and spec.snapshot is not None
    return {table: span for table, span in sources.ranges.items() if _has_changes(paths.table(table), span, by_batch)}


def newest_interval(
    spans: Iterable[tuple[str, tuple[int | None, int]]], paths: LakehousePaths, ledger: Ledger
) -> Interval | None:
    """Return the interval that ends last of the batches in these ranges of sources; None if no batch is in them.

    What reads older rows is run and judged for it, rather than for the current day.
    """
    intervals = [
        batch.intent.interval
        for table, (after, upto) in spans
        for batch in ledger.batches(table, table_id(paths.table(table)), -1 if after is None else after, upto)
    ]
    return max(intervals, key=lambda interval: (interval.end, interval.start), default=None)


def why_whole(ranges: Mapping[str, tuple[int | None, int]], paths: LakehousePaths) -> str:
    """Return why a gold batch cannot find the groups that changes affect; empty if it can, or if the table is new."""
    unread = [table for table, (after, _) in ranges.items() if after is None]
    if len(unread) == len(ranges):
        return ""
    if unread:
        return f"no batch has read {' and '.join(unread)} before"
    changed = {table: (after, upto) for table, (after, upto) in ranges.items() if after is not None and after < upto}
    gaps = [table for table, span in changed.items() if not _is_comparable(paths.table(table), *span)]
    lacking = f"the change feed of {' and '.join(gaps)} lacks versions"
    return f"{lacking}, and their files cannot be compared" if gaps else ""


def _is_comparable(path: LakePath, after: int, upto: int) -> bool:
    """Whether the rows that changed can be found: in the change feed, or among the files that changed."""
    return feed_spans(path, after, upto) is not None or changed_files(path, after, upto) is not None


def ranges_message(spec: SilverSpec | GoldSpec, ranges: dict[str, tuple[int | None, int]], *, reprocess: bool) -> str:
    """Return what a run would read, in words."""
    if reprocess:
        return "reads the interval's rows again"
    if not ranges:
        return f"nothing new in {', '.join(spec.source_tables)}"
    firsts = {table: 0 if after is None else after + 1 for table, (after, _) in ranges.items()}
    return ", ".join(
        f"{table} version {upto}" if firsts[table] == upto else f"{table} versions {firsts[table]} to {upto}"
        for table, (_, upto) in ranges.items()
    )


def limit_batch(
    spec: SilverSpec, sources: BatchSources, paths: LakehousePaths, readable_since: datetime
) -> BatchSources:
    """Return the sources with shorter ranges, so that a batch keeps the limits of its spec for each of its sources.

    A commit of the source is never split: the limits of bronze bound its size. Commits that the log of the source no
    longer has, and versions before `readable_since` that Delta no longer reads, are read together with the next commit.
    """
    if spec.max_rows_per_batch is None and spec.max_files_per_batch is None:
        return sources
    limits = spec.max_rows_per_batch or math.inf, spec.max_files_per_batch or math.inf
    ranges = {
        table: (after, _limited_version(paths.table(table), after, upto, limits, readable_since))
        for table, (after, upto) in sources.ranges.items()
    }
    return sources.model_copy(update={"ranges": ranges})


def _limited_version(
    table: LakePath, after: int | None, upto: int, limits: tuple[float, float], readable_since: datetime
) -> int:
    """Return the version up to which a batch reads a source within its limits in rows and data files."""
    max_rows, max_files = limits
    rows = files = 0
    end: int | None = None
    for commit in takewhile(lambda commit: commit.version <= upto, remaining_commits(table, after)):
        if commit.changes_data:
            rows, files = rows + int(commit.metrics.get("numOutputRows", 0)), files + len(commit.added)
        if end is not None and (rows > max_rows or files > max_files):
            return end
        end = commit.version if commit.at >= readable_since else end
    return upto


def require_same_sources(sources: BatchSources, paths: LakehousePaths) -> None:
    """Require that the folders of a batch's pinned sources still hold the tables that were pinned.

    Raises:
        BadInputError: a source was replaced by another table, or is gone.
    """
    pins = {table: (pinned, sources.ranges.get(table, (None, None))[1]) for table, pinned in sources.source_ids.items()}
    pins |= {table: (pin.table_id, pin.version) for table, pin in sources.references.items()}
    for table, (pinned, version) in pins.items():
        current = table_id_at(paths.table(table), version)
        if current != pinned:
            raise BadInputError(
                f"{table} at {paths.table(table)} is not the table that this batch has read: its id was {pinned} and "
                f"is {current or 'gone'}",
                "Nothing more is written from it. Clear the task to read the new table from its beginning. If this "
                "error comes again, the batch is committed and needs its old source: put the old folder back, and "
                "build the table again only while no run is active.",
            )


def _require_readable(reader: str, table: str, path: LakePath, version: int) -> None:
    """Require that Delta can still read a version: it cannot after a cleanup of the log below it."""
    if is_file(commit_file(path, version)):
        return
    try:
        open_table(path, version=version)
    except DeltaError as error:
        raise NotReadyError(
            f"{reader}: version {version} of {table} is certified, but cannot be read any more: its log was cleaned up",
            f"Readers of {table} wait until a later version passes its gate: correct what its gate refuses, or let it "
            f"pass with `lakehouse gate override {table}`.",
        ) from error


def _has_changes(table: LakePath, span: tuple[int | None, int], by_batch: bool) -> bool:
    after, upto = span
    if after is None or after == upto:
        return after is None
    try:
        commits = [commit for commit in commits_after(table, after) if commit.version <= upto]
        return any(commit.changes_data or (by_batch and commit.txns) for commit in commits)
    except TornLogError:
        # The log of the source was cleaned up since the last batch: changes cannot be excluded.
        return True

"""The plan of a restore in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.time_format import MINUTE
from millrace.repair.restore_plan import ChangedBatch, RestorePlan

_MOST = 20
"""The most lines of one kind that a person is shown; `--json` has all of them."""


def plan_lines(plan: RestorePlan, *, has_keys: bool = True) -> Iterator[str]:
    """Yield the plan in words, with the keys of some rows, or without values of rows."""
    table, after = plan.table, plan.newest + 1
    yield f"{table}: version {after} would have the rows of version {plan.restores}. Nothing was written."
    changes = _changes(plan.inserted, plan.updated, plan.deleted)
    if plan.taken_at and plan.copied_back:
        back = f"{counted(plan.copied_back.files, 'file')}, {in_bytes(plan.copied_back.size)}"
        yield f"Copied back from {plan.backup}, taken {plan.taken_at:{MINUTE}}: {back}"
    yield f"Rows: {plan.rows_now:,} now, {plan.rows_after:,} after: {changes}"
    yield from some_lines(
        [
            f"  {', '.join(f'{name} {value}' for name, value in each['partition'].items())}: "
            f"{_changes(each['inserted'], each['updated'], each['deleted'])}"
            for each in plan.partitions
        ]
    )
    if plan.columns:
        yield f"Columns with other values: {', '.join(f'{name} ({rows:,})' for name, rows in plan.columns.items())}"
    yield from (f"Column {line}" for line in plan.definition)
    if plan.samples and has_keys:
        yield "Such as:"
        for each in plan.samples:
            key = ", ".join(f"{name} {value}" for name, value in each["key"].items())
            yield f"  {each['kind']}: {key}"
    yield from _batches("Batches that are undone", plan.undone)
    yield from _batches("Batches that come back", plan.redone)
    yield from (f"Also undone: {line}" for line in plan.others)
    if plan.files:
        fate = "stay undone" if plan.no_reload else "the next runs of their intervals load again"
        yield f"Landing files that {fate}: {len(plan.files):,}"
        yield from some_lines([f"  {file}" for file in plan.files])
    for secondary in plan.secondary:
        yield f"{secondary.name}: {secondary.rows_now:,} rows now, {secondary.rows_after:,} after"
    if plan.replays_undone:
        replays = counted(plan.replays_undone, "replay is", "replays are")
        yield f"{replays} undone: the rows wait in quarantine again"
    yield f"Readers: version {plan.certified} now, version {after} after"
    yield from some_lines([f"  {reader.name}: version {reader.version}" for reader in plan.readers])
    yield "Downstream:" if plan.downstream else "No table reads it."
    yield from (f"  {each}" for each in plan.downstream)


def _changes(inserted: int, updated: int, deleted: int) -> str:
    return f"{inserted:,} inserted, {updated:,} updated, {deleted:,} deleted"


def _batches(title: str, batches: Sequence[ChangedBatch]) -> Iterator[str]:
    if batches:
        yield f"{title}:"
    yield from some_lines(
        [
            f"  batch {batch.batch_seq} (version {batch.version}), {batch.interval}, run {batch.run_id}: "
            + ("not counted" if batch.applied is None else counted(batch.applied, "row"))
            for batch in batches
        ]
    )


def some_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first of many lines, and how many more there are."""
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST:,} more, which --json lists"

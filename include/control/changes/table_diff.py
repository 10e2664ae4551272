"""How a table differs from its spec, and what follows. No Spark is started, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from include.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from include.control.changes.spec_changes import MEASURES, Effect, SpecChange, by_weight, column_changes, spec_changes
from include.control.changes.table_columns import columns_of
from include.control.ledger.measures import table_rows
from include.control.ledger.new_columns import ColumnState
from include.control.ledger.resolution import table_id as table_id_of
from include.control.ledger.spec_history import Document, document_of
from include.control.log.batch import Winner
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import is_table, open_table
from include.control.ops_tables import OpsTables
from include.errors import BadInputError


@dataclass(frozen=True)
class TableDiff:
    """The difference between a table and its spec.

    Attributes:
        table: the table.
        changes: what differs, those first of which most follows.
        outdated: the intervals whose rows another spec has worked out, oldest first; silver only.
        rows: how many rows are to be worked out again.
        unknown: whether nobody knows which spec the last batch followed.
    """

    table: str
    changes: tuple[SpecChange, ...] = ()
    outdated: tuple[datetime, ...] = ()
    rows: int = 0
    unknown: bool = False

    def of(self, effect: Effect) -> list[SpecChange]:
        """The changes that have one effect."""
        return [change for change in self.changes if change.effect is effect]

    @property
    def wants_a_run(self) -> bool:
        """Whether a run has something to do though its sources have nothing new: a column is missing, say."""
        return any(change.is_work for change in self.changes)

    @property
    def has_new_measures(self) -> bool:
        """Whether the last batch has computed fewer measures than the spec states."""
        return any(change.is_work and change.key.startswith(MEASURES) for change in self.changes)

    @property
    def misfit(self) -> str:
        """Why no run writes the table: its rows were built on something that its spec says otherwise by now."""
        found = self.of(Effect.REBUILD)
        way_out = f"Nothing was written. Put the spec back, or build the table anew: lakehouse rebuild {self.table}"
        return f"{self.table}: does not fit its spec: {'; '.join(map(str, found))}\n{way_out}" if found else ""

    def require_fitting(self) -> None:
        """Refuse to write to a table that does not fit its spec.

        Raises:
            BadInputError: its keys, its order, a type or a partition are others; the message says how to build it anew.
        """
        if self.misfit:
            raise BadInputError(self.misfit)

    def lines(self, *, after_a_run: bool = False) -> tuple[str, ...]:
        """What differs and what follows, a line for each effect; none where nothing differs.

        Args:
            after_a_run: the run has applied what a run applies.
        """
        return (*self._lines(after_a_run), *self._unknown())

    def _lines(self, after_a_run: bool) -> Iterator[str]:
        for effect in reversed(Effect):
            if found := self.of(effect):
                said = "applied" if after_a_run and effect is Effect.APPLIED else str(effect)
                yield f"{self.table}: {said}: {'; '.join(map(str, found))}{self._advice(effect)}"

    def _advice(self, effect: Effect) -> str:
        if effect is Effect.REBUILD or (effect is Effect.RECOMPUTE and self.table.startswith("bronze.")):
            return f". The way: lakehouse rebuild {self.table}"
        if effect is Effect.RECOMPUTE and self.outdated:
            days = f"--interval {self.outdated[0]:%Y-%m-%d} --to {self.outdated[-1]:%Y-%m-%d}"
            number = "1 interval" if len(self.outdated) == 1 else f"{len(self.outdated)} intervals"
            many = f"{number} with {self.rows:,} rows {'follows' if len(self.outdated) == 1 else 'follow'} the old spec"
            return f". {many}: lakehouse run --table {self.table} {days} --reprocess"
        if effect is Effect.RECOMPUTE:
            again = f"lakehouse run --table {self.table} --reprocess --interval ..."
            return f". {self.rows:,} rows follow the old spec: {again}"
        return ""

    def _unknown(self) -> tuple[str, ...]:
        text = f"{self.table}: its last batch followed another spec, and which one was not written down"
        return (text,) if self.unknown else ()


def table_diff(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """How the table differs from its spec; nothing for a table that has no batch yet.

    Args:
        spec: the table's spec.
        last: its last batch.
        ops: the ledger's tables.
    """
    if last is None:
        return TableDiff(spec.table)
    now, followed = document_of(spec), ops.specs.of(spec.table, last.intent.table_id)
    changes = _changes(spec, last, followed, ops)
    outdated = _outdated(spec, last.intent.table_id, followed, now, ops) if isinstance(spec, SilverSpec) else {}
    if outdated and not any(change.effect is Effect.RECOMPUTE for change in changes):
        changes.append(SpecChange("rows", Effect.RECOMPUTE, "a spec of before has worked them out"))
    rows = sum(outdated.values())
    if not outdated and any(change.effect is Effect.RECOMPUTE for change in changes):
        path = ops.paths.table(spec.table)
        rows = table_rows(path, latest_version(path))
    unknown = _is_unknown(spec, last, followed)
    return TableDiff(spec.table, tuple(by_weight(changes)), tuple(sorted(outdated)), rows, unknown)


def diff_for_run(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """The same for who runs the table, or plans to, and so does often: all batches are read only when it matters.

    Which intervals follow an old spec is looked up while the last batch follows one; `lakehouse diff` always says it.
    """
    changed = changes_since(spec, last, ops)
    return table_diff(spec, last, ops) if changed.of(Effect.RECOMPUTE) else changed


def changes_since(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """What changed in the spec since the table's last batch, without the intervals and rows that it means.

    The table is opened only where the spec is another one: who writes it holds its columns against the spec anyway.
    """
    if last is None:
        return TableDiff(spec.table)
    followed = ops.specs.of(spec.table, last.intent.table_id)
    if followed.get(last.intent.spec_hash) == document_of(spec) == _latest(followed):
        return TableDiff(spec.table)
    changes = tuple(_changes(spec, last, followed, ops))
    return TableDiff(spec.table, changes, unknown=_is_unknown(spec, last, followed))


def _is_unknown(spec: AnySpec, last: Winner, followed: Mapping[str, Document]) -> bool:
    return last.intent.spec_hash != spec.spec_hash and last.intent.spec_hash not in followed


def _latest(followed: dict[str, Document]) -> Document | None:
    return next(reversed(followed.values()), None)


def _changes(spec: AnySpec, last: Winner, followed: dict[str, Document], ops: OpsTables) -> list[SpecChange]:
    """What a batch would make otherwise than the last one, and what no run has applied yet."""
    before, now = followed.get(last.intent.spec_hash), document_of(spec)
    if before is None:
        return []
    by_batch = [change for change in spec_changes(before, now) if not _is_applied_by_any_run(change)]
    by_run = [change for change in spec_changes(_latest(followed) or before, now) if _is_applied_by_any_run(change)]
    columns = () if isinstance(spec, GoldSpec) else _columns(spec, now, ops)
    return by_weight([*by_batch, *by_run, *columns])


def _is_applied_by_any_run(change: SpecChange) -> bool:
    """Whether a run applies it that has nothing to load; measures take a batch."""
    return change.effect is Effect.APPLIED and not change.key.startswith(MEASURES)


def _columns(spec: BronzeSpec | SilverSpec, now: Document, ops: OpsTables) -> list[SpecChange]:
    delta = open_table(ops.paths.table(spec.table), without_files=True)
    on_disk = columns_of(delta)
    if isinstance(spec, BronzeSpec):
        taken_on = ops.new_columns.of(spec.table, ColumnState.APPROVED) if spec.on_drift == "evolve" else []
        for name in {column.name for column in taken_on} - spec.columns.keys():
            on_disk.pop(name, None)
    return list(column_changes(now, on_disk, delta.metadata().partition_columns))


def _outdated(
    spec: SilverSpec, table_id: str, followed: Mapping[str, Document], now: Document, ops: OpsTables
) -> dict[datetime, int]:
    """interval -> its rows, for each whose rows were last worked out by a spec with another meaning."""
    if not is_table(ops.paths.table(spec.source)):
        return {}
    old = {
        spec_hash
        for spec_hash, document in followed.items()
        if any(change.effect is Effect.RECOMPUTE for change in spec_changes(document, now))
    }
    ledger, last_by = ops.ledger, dict[datetime, str]()
    source_id = table_id_of(ops.paths.table(spec.source))
    brought = ledger.batches(spec.source, source_id, -1) if old else []
    for winner in ledger.batches(spec.table, table_id, -1) if old else []:
        for start in _worked_out(winner, spec.source, source_id, brought):
            last_by[start] = winner.intent.spec_hash
    return {start: _rows(spec.source, start, brought, ops) for start, spec_hash in last_by.items() if spec_hash in old}


def _worked_out(winner: Winner, source: str, source_id: str, brought: list[Winner]) -> Iterator[datetime]:
    """The intervals whose rows a batch has read."""
    sources = winner.intent.sources
    if sources.replay or sources.restores is not None:
        return
    if sources.reprocess:
        yield winner.intent.interval_start
    after, upto = sources.ranges.get(source, (0, 0)) if sources.source_ids.get(source) == source_id else (0, 0)
    for batch in brought:
        if (-1 if after is None else after) < batch.version <= upto:
            yield batch.intent.interval_start


def _rows(source: str, start: datetime, brought: list[Winner], ops: OpsTables) -> int:
    of_interval = {one.token: one.batch_seq for one in brought if one.intent.interval_start == start}
    return ops.ledger.applied_rows(source, of_interval) or 0

"""The difference between a table and its spec, and its consequences. No Spark is started, nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.control.changes.last_reads import last_reads
from millrace.control.changes.spec_changes import (
    VALUES,
    Effect,
    SpecChange,
    column_changes,
    sort_by_effect,
    spec_changes,
)
from millrace.control.changes.table_columns import columns_of, delta_type
from millrace.control.changes.table_properties import changes_of_properties, with_setters
from millrace.control.ledger.new_columns import ColumnState
from millrace.control.ledger.resolution import table_id as table_id_of
from millrace.control.ledger.spec_history import RULE, Document, document_of
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import TABLE_ID, is_table, open_table
from millrace.control.log.table_queries import query, text_literals
from millrace.control.ops_tables import OpsTables
from millrace.errors import MisfitError


@dataclass(frozen=True)
class TableDiff:
    """The difference between a table and its spec.

    Attributes:
        table: the table.
        changes: the changes, those with the largest effect first.
        outdated: the intervals whose rows were computed by another spec, oldest first; bronze and silver only.
        rows: the number of rows to compute again.
        unknown: whether the spec of the last batch was not recorded.
        from_topics: whether its rows come from Kafka topics, which no rebuild reads again.
        newest: the interval of its last batch.
    """

    table: str
    changes: tuple[SpecChange, ...] = ()
    outdated: tuple[datetime, ...] = ()
    rows: int = 0
    unknown: bool = False
    from_topics: bool = False
    newest: datetime | None = None

    def with_effect(self, effect: Effect) -> list[SpecChange]:
        """Return the changes with this effect."""
        return [change for change in self.changes if change.effect is effect]

    @property
    def may_have_other_values(self) -> bool:
        """Whether rows have values that were read by the rule of an earlier Millrace."""
        return any(change.key == VALUES for change in self.changes)

    def with_remark(self, text: str) -> TableDiff:
        """Return the difference with more words on the values that were read by the rule of an earlier Millrace."""
        changes = (replace(each, text=f"{each.text}; {text}") if each.key == VALUES else each for each in self.changes)
        return replace(self, changes=tuple(changes))

    @property
    def needs_run(self) -> bool:
        """Whether a run has work even if its sources have nothing new, for example to add a column."""
        return any(change.needs_run for change in self.changes)

    @property
    def computes_all_groups(self) -> bool:
        """Whether the next batch of a gold table computes all groups: some follow another spec, or an unknown one."""
        return self.unknown or any(change.computes_all_groups for change in self.changes)

    @property
    def misfit(self) -> str:
        """Why no run writes the table: only a rebuild makes it fit its spec. Empty if it fits."""
        changes = self.with_effect(Effect.REBUILD)
        way_out = (
            f"Nothing was written. Put the spec back, or rebuild the table: {self._rebuild}; "
            "in Airflow, the link Table rebuild of this task opens the form."
        )
        return f"{self.table}: does not fit its spec: {'; '.join(map(str, changes))}\n{way_out}" if changes else ""

    def require_fit(self) -> None:
        """Check that the table fits its spec.

        Raises:
            MisfitError: the spec has other keys, another order, type or partition; the message says how to rebuild.
        """
        if self.misfit:
            raise MisfitError(self.misfit)

    def lines(self, *, after_a_run: bool = False) -> tuple[str, ...]:
        """Return a line for each effect, with its changes and the command to run; nothing if nothing differs.

        Args:
            after_a_run: a run has already applied the changes that runs apply.
        """
        lines = []
        for effect in reversed(Effect):
            if changes := self.with_effect(effect):
                label = "applied" if after_a_run and effect is Effect.APPLIED else str(effect)
                lines.append(f"{self.table}: {label}: {'; '.join(map(str, changes))}{self._advice(effect)}")
        if self.unknown:
            lines.append(self._unknown_line)
        return tuple(lines)

    def changed_lines(self) -> tuple[str, ...]:
        """Return a line for each change, without a command to run; nothing if nothing differs."""
        changes = tuple(f"{self.table}: {change}" for change in self.changes)
        return (*changes, self._unknown_line) if self.unknown else changes

    @property
    def _unknown_line(self) -> str:
        return f"{self.table}: its last batch followed another spec, and which one was not recorded"

    @property
    def _rebuild(self) -> str:
        """The command that rebuilds the table; tables downstream have values of the rows that are computed again."""
        is_read_again = self.table.startswith("bronze.") and self.with_effect(Effect.RECOMPUTE) and not self.from_topics
        return f"lakehouse rebuild {self.table}{' --downstream' if is_read_again else ''}"

    def _advice(self, effect: Effect) -> str:
        if effect is Effect.REBUILD:
            return f". The way: {self._rebuild}"
        if effect is not Effect.RECOMPUTE:
            return ""
        # The groups of gold belong to no interval: any one computes them all again.
        days, text = f"{self.newest:%Y-%m-%d}", counted(self.rows, "row follows", "rows follow")
        if self.outdated:
            days = f"{self.outdated[0]:%Y-%m-%d} --to {self.outdated[-1]:%Y-%m-%d}"
            rows = f"with {counted(self.rows, 'row')}"
            text = counted(len(self.outdated), f"interval {rows} follows", f"intervals {rows} follow")
        if self.from_topics:
            return f". {text} the old spec, for good: topics delete their messages"
        if any(change.by_rebuild for change in self.with_effect(effect)):
            return f". Only a rebuild computes all rows again: {self._rebuild}"
        if self.with_effect(Effect.REBUILD):
            return f". {text} the old spec, until the rebuild"
        if self.table.startswith("bronze."):
            return f". {text} the old spec: {self._rebuild}"
        return f". {text} the old spec: lakehouse run --table {self.table} --reprocess --interval {days}"


def table_diff(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """Return the difference between a table and its spec; none for a table without a last batch."""
    diff = diff_of_values(spec, last, ops)
    properties = () if last is None else _properties(spec, ops)
    return replace(diff, changes=tuple(sort_by_effect([*diff.changes, *properties])))


def diff_of_values(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """Return the difference without the properties of the table, which give no row other values."""
    if last is None:
        return TableDiff(spec.table)
    now, specs = document_of(spec), ops.specs.of(spec.table, last.intent.table_id)
    converted = _converted(spec, now, specs, ops)
    changes = _changes(spec, last, specs, ops, converted)
    earlier = {
        spec_hash: recomputes
        for spec_hash, document in specs.items()
        if (recomputes := [each for each in spec_changes(document, now, converted) if _gives_other_values(each)])
    }
    is_all_computed = any(change.computes_all_groups for change in changes)
    old = () if is_all_computed else earlier.keys()
    outdated, rows = _outdated(spec, last.intent.table_id, old, ops) if old else ((), 0)
    has_old = bool(outdated or rows)
    if has_old and not any(change.key == VALUES for change in changes):
        changes += [each for recomputes in earlier.values() for each in recomputes if each.key == VALUES][:1]
    if has_old and not any(change.effect is Effect.RECOMPUTE for change in changes):
        changes.append(SpecChange("rows", Effect.RECOMPUTE, "an earlier spec has computed them"))
    changes += _replaced_sources(spec, last, ops)
    if not has_old and any(change.effect is Effect.RECOMPUTE for change in changes):
        path = ops.paths.table(spec.table)
        rows = table_rows(path, latest_version(path))
    unknown = _is_unknown(spec, last, specs)
    from_topics = isinstance(spec, BronzeSpec) and spec.reads_kafka
    newest = last.intent.interval_start
    return TableDiff(spec.table, tuple(sort_by_effect(changes)), outdated, rows, unknown, from_topics, newest)


def diff_for_run(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """Return the difference for a run or a plan; read the history of batches only if the last batch needs a recompute.

    So intervals before the last batch that follow an old spec are not always named. `lakehouse diff` names them all.
    """
    changed = changes_since(spec, last, ops)
    return table_diff(spec, last, ops) if changed.with_effect(Effect.RECOMPUTE) else changed


def lines_after_run(spec: AnySpec, previous: Winner | None, last: Winner | None, ops: OpsTables) -> tuple[str, ...]:
    """Return which changes of the spec a run has applied, and what it has left to compute again.

    Args:
        spec: the table.
        previous: the last batch before the run; None if there was none.
        last: the last batch now.
        ops: the ledger.
    """
    diff = diff_for_run(spec, previous, ops)
    if diff.with_effect(Effect.RECOMPUTE) and not table_diff(spec, last, ops).with_effect(Effect.RECOMPUTE):
        diff = replace(diff, changes=tuple(each for each in diff.changes if each.effect is not Effect.RECOMPUTE))
    return diff.lines(after_a_run=True)


def changes_since(spec: AnySpec, last: Winner | None, ops: OpsTables) -> TableDiff:
    """Return the changes of the spec since the table's last batch, without the affected intervals and rows.

    The table is opened only if the spec has changed: a writer compares its columns with the spec anyway.
    """
    if last is None or ops.specs.is_latest(spec, last.intent.table_id, last.intent.spec_hash):
        return TableDiff(spec.table)
    specs = ops.specs.of(spec.table, last.intent.table_id)
    changes = tuple(_changes(spec, last, specs, ops, _converted(spec, document_of(spec), specs, ops)))
    unknown, newest = _is_unknown(spec, last, specs), last.intent.interval_start
    return TableDiff(spec.table, changes, unknown=unknown, newest=newest)


def _replaced_sources(spec: AnySpec, last: Winner, ops: OpsTables) -> Iterator[SpecChange]:
    for source, source_id in last.intent.sources.source_ids.items():
        if not is_table(path := ops.paths.table(source)):
            continue
        if table_id_of(path) != source_id:
            yield SpecChange(source, Effect.APPLIED, "another table since the last batch, read from its beginning")
        elif isinstance(spec, SilverSpec) and TABLE_ID in open_table(path, without_files=True).metadata().configuration:
            batches = (batch.intent.sources for batch in ops.ledger.batches(spec.table, last.intent.table_id, -1))
            read = pairwise(sources for sources in batches if source in sources.source_ids)
            switches = [now for before, now in read if before.source_ids[source] != now.source_ids[source]]
            if switches and source not in switches[-1].rebuilt:
                text = "an earlier Millrace merged its rebuild; rows may hold values from before"
                yield SpecChange(source, Effect.RECOMPUTE, text, by_rebuild=True)


def _properties(spec: AnySpec, ops: OpsTables) -> Iterator[SpecChange]:
    path = ops.paths.table(spec.table)
    changes = changes_of_properties(spec, open_table(path, without_files=True), ops.specs)
    for change in with_setters(changes, path):
        yield SpecChange(change.key, Effect.MAINTAINED, change.text)


def _gives_other_values(change: SpecChange) -> bool:
    return change.effect is Effect.RECOMPUTE or change.computes_all_groups


def _is_unknown(spec: AnySpec, last: Winner, specs: Mapping[str, Document]) -> bool:
    return last.intent.spec_hash != spec.spec_hash and last.intent.spec_hash not in specs


def _changes(
    spec: AnySpec, last: Winner, specs: dict[str, Document], ops: OpsTables, converted: Collection[str]
) -> list[SpecChange]:
    """Return the changes that affect the next batch, and the changes that no run has applied yet."""
    before, now = specs.get(last.intent.spec_hash), document_of(spec)
    if before is None:
        return []
    by_batch = [change for change in spec_changes(before, now, converted) if not _needs_no_batch(change)]
    latest = next(reversed(specs.values()))
    by_run = [change for change in spec_changes(latest, now) if _needs_no_batch(change)]
    columns = () if isinstance(spec, GoldSpec) else _columns(spec, now, ops)
    return sort_by_effect([*by_batch, *by_run, *columns])


def _needs_no_batch(change: SpecChange) -> bool:
    """Return whether a run applies the change even if it loads nothing; measures and queries need a batch."""
    return change.effect is Effect.APPLIED and not change.computes_all_groups


def _columns(spec: BronzeSpec | SilverSpec, now: Document, ops: OpsTables) -> list[SpecChange]:
    delta = open_table(ops.paths.table(spec.table), without_files=True)
    on_disk = columns_of(delta)
    if isinstance(spec, BronzeSpec):
        approved = ops.new_columns.of(spec.table, ColumnState.APPROVED) if spec.on_drift == "evolve" else []
        for name in {column.name for column in approved} - spec.columns.keys():
            on_disk.pop(name, None)
    return list(column_changes(now, on_disk, delta.metadata().partition_columns))


def _converted(spec: AnySpec, now: Document, specs: Mapping[str, Document], ops: OpsTables) -> tuple[str, ...]:
    """Return the columns whose values are converted, if a spec was recorded with another rule for that.

    A silver column converts nothing if its sources have the same column with the same type.
    """
    if all(document.get(RULE) == now.get(RULE) for document in specs.values()):
        return ()
    if not isinstance(spec, SilverSpec):
        return spec.converted_columns
    paths = [path for path in map(ops.paths.table, spec.source_tables) if is_table(path)]
    sources = [columns_of(open_table(path, without_files=True)) for path in paths]
    computed = {name for source in spec.sources for name in source.columns}
    return tuple(
        name
        for name in spec.converted_columns
        if spec.columns[name].expression
        or name in computed
        or any(source.get(name) != delta_type(spec.columns[name].type) for source in sources)
    )


def _outdated(spec: AnySpec, table_id: str, old: Collection[str], ops: OpsTables) -> tuple[tuple[datetime, ...], int]:
    """Return the intervals whose rows were last computed by one of the specs `old`, oldest first, and their rows.

    Each row of bronze and gold names the batch that has computed it. The groups of gold belong to no interval.
    """
    ledger, rows = ops.ledger, Counter[datetime]()
    batches = ledger.batches(spec.table, table_id, -1)
    if not isinstance(spec, SilverSpec):
        if not (tokens := text_literals(batch.token for batch in batches if batch.intent.spec_hash in old)):
            return (), 0
        start = "_interval_start" if isinstance(spec, BronzeSpec) else "NULL"
        counting = f"SELECT {start} AS start, count(*) AS rows FROM stored WHERE _batch_token IN ({tokens}) GROUP BY 1"
        stored = query(open_table(ops.paths.table(spec.table)), counting)
        return tuple(sorted(each["start"] for each in stored if each["start"])), sum(each["rows"] for each in stored)
    for source in filter(lambda source: is_table(ops.paths.table(source)), spec.source_tables):
        source_id = table_id_of(ops.paths.table(source))
        for load, spec_hash in last_reads(ledger, spec.table, table_id, source, source_id):
            if spec_hash in old:
                applied = ledger.history.applied_rows(source, {load.token: load.batch_seq})
                rows[load.intent.interval_start] += applied or 0
    return tuple(sorted(rows)), sum(rows.values())

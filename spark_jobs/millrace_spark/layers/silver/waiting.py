"""Replay the rows that waited for another table, as the next batch of a silver table (ADR 50)."""

from __future__ import annotations

from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import BatchSources, StreamPosition, new_token
from millrace.control.quarantine.events import Decision
from millrace.control.quarantine.stored_rows import WHOLE, QuarantinedRow
from millrace.control.quarantine.waits import record_tried, rows_to_try
from millrace_spark.layers.received_rows import MAX_ROWS
from millrace_spark.layers.silver.replays import SilverReplays
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import ROW_ID
from millrace_spark.transforms.refusals import is_accepted


class WaitingRows:
    """The rows in the quarantine of a silver table that wait for the values of another table."""

    def __init__(self, context: JobContext, spec: SilverSpec, replays: SilverReplays) -> None:
        self._context = context
        self._spec = spec
        self._replays = replays

    def plan(self, position: StreamPosition, sources: BatchSources) -> BatchSources | None:
        """Pin the waiting rows that pass with the references of `sources`; None if no row passes.

        Only these rows are replayed: else each new version of the other table would try all waiting rows in a batch.
        """
        context, spec, pinned = self._context, self._spec, sources.references
        waiting = rows_to_try(spec, position, pinned, context.paths, context.now(), WHOLE)
        if not waiting:
            return None
        passing = self._passing(waiting, sources)
        if not passing:
            record_tried(spec, position, pinned, context.paths)
            return None
        replay, tables = new_token(), " and ".join(f"{table} version {pin.version}" for table, pin in pinned.items())
        decision = Decision("", f"looked into {tables}", context.args.run_id)
        context.ops.quarantine.pin(
            spec.table, position.table_id, replay, [row.received_row for row in passing], decision
        )
        context.notes.append(f"{spec.table}: replays {counted(len(passing), 'row')} that waited for {tables}")
        return position.last_sources.at_same_position(replay=replay, replayed_rows=len(passing), references=pinned)

    def _passing(self, waiting: list[QuarantinedRow], sources: BatchSources) -> list[QuarantinedRow]:
        """Return the first `MAX_ROWS` rows that pass all rules."""
        passing: list[QuarantinedRow] = []
        with self._context.reading_session({}) as session:
            for at in range(0, len(waiting), MAX_ROWS):
                some = waiting[at : at + MAX_ROWS]
                received = [row.received_row for row in some]
                checked = self._replays.check_received(session, received, sources.references)
                accepted = {row[ROW_ID] for row in checked.where(is_accepted()).select(ROW_ID).collect()}
                passing += [row for row in some if row.id in accepted]
                if len(passing) >= MAX_ROWS:
                    break
        return passing[:MAX_ROWS]

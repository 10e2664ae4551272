"""Commit the batches of the streams of a table that a run writes, check the newest version, and report."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from millrace.contracts.job.report import JobReport
from millrace.control.log.batch import Stream, Winner
from millrace.control.log.streams import NONE, concurrency_of
from millrace.control.planning.complete_batches import unclosed_batches
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import HOPELESS, MillraceError
from millrace_spark.layers.gate.gate import run_gate
from millrace_spark.layers.own_table import WorkOfStream, batch_request
from millrace_spark.layers.writing import batch_writer, check_and_report, commit_batch, newest_winner
from millrace_spark.protocol.batches import BatchResult, BatchWork
from millrace_spark.runtime.context import JobContext

log = logging.getLogger(__name__)


class RepeatedWork(BatchWork, Protocol):
    """A `BatchWork` that may leave something for further batches."""

    @property
    def has_more(self) -> bool:
        """Whether the last plan left something."""


def commit_streams(context: JobContext, works: Mapping[Stream, RepeatedWork], work_of: WorkOfStream) -> JobReport:
    """Commit batches of each stream until it has nothing more, then check the newest version.

    Of several streams, an error in one does not stop the others: it ends the run after they were written and checked.

    Args:
        context: the job's.
        works: what plans, writes and closes the batches of each stream.
        work_of: closes a batch whose writer died.

    Raises:
        MillraceError: a stream ended with an error; if several did, the message has the lines of all.
    """
    results, errors = list[BatchResult](), list[MillraceError]()
    for stream, work in works.items():
        try:
            results.extend(_batches(context, stream, work))
        except MillraceError as error:
            if len(works) == 1:
                raise
            log.error("%s: %s", stream.name, error)
            errors.append(error)
    if not errors:
        finish_streams(context, work_of, newest_winner(results))
        return check_and_report(context, results)
    # A stream may have closed the batch of a dead driver before its error: the version to check is the table's newest.
    position = stream_position(context.spec, context.paths, context.ops.ledger)
    if position and position.last:
        finish_streams(context, work_of, position.last)
        run_gate(context, position.last.version)
    raise _joined(context.spec.table, errors, len(works))


def finish_streams(context: JobContext, work_of: WorkOfStream, newest: Winner | None) -> None:
    """Close the batches of other streams up to the newest one that the gate will cover, if their writers died.

    Raises:
        LeaseLostError: another run, which has committed such a batch, did not close it in time.
    """
    if newest and concurrency_of(context.spec) != NONE:
        _finish(context, work_of, newest)


def finish_table(context: JobContext, work_of: WorkOfStream) -> None:
    """Close all batches of the job's table whose writers died: the rows that they refused are in quarantine then.

    Raises:
        LeaseLostError: another run, which has committed such a batch, did not close it in time.
    """
    position = stream_position(context.spec, context.paths, context.ops.ledger)
    if position and position.last:
        _finish(context, work_of, position.last)


def _finish(context: JobContext, work_of: WorkOfStream, newest: Winner) -> None:
    table, ops = context.spec.table, context.ops
    for batch in unclosed_batches(table, newest.version, context.paths, ops.ledger, ops.gates):
        stream = Stream(table, batch.intent.stream)
        batch_writer(context, batch_request(context, stream), work_of(stream)).finish(context.leases)


def _batches(context: JobContext, stream: Stream, work: RepeatedWork) -> Iterator[BatchResult]:
    yield commit_batch(context, work, stream)
    while work.has_more and not context.is_to_stop():
        log.info("%s: more is waiting than fits in one batch; going on", stream.table)
        yield commit_batch(context, work, stream)


def _joined(table: str, errors: Sequence[MillraceError], streams: int) -> MillraceError:
    """Return one error for all; its outcome is that of an error after which another try may help, if there is one."""
    if len(errors) == 1:
        return errors[0]
    joined = MillraceError(f"{table}: {len(errors)} of {streams} streams ended with an error", *map(str, errors))
    first = min(errors, key=lambda error: error.outcome in HOPELESS)
    joined.outcome, joined.exit_code = first.outcome, first.exit_code
    return joined

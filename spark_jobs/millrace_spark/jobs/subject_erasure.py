"""Erase the subjects of a request from all tables that have their keys, sources first, while other runs go on.

A table follows its sources by a run first, so that none of the rows that it has not read yet comes later. Then its own
rows go by their keys, and its gate lets readers have that version. A table without keys follows by its run alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millrace.contracts.counted import counted
from millrace.contracts.job.args import WRITER_OF_LAYER, Job
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.job.requests import ErasureRequest
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.ledger.erasures import ErasedTable
from millrace.control.ledger.resolution import table_id
from millrace.control.log.stored_tables import is_table
from millrace.control.planning.stream_positions import stream_position
from millrace.erase.reach import Reach, reach_of
from millrace.erase.subjects import Subjects
from millrace.errors import GateFailedError, Outcome
from millrace_spark.jobs.run_intervals import RUN
from millrace_spark.layers.gate.gate import run_gate
from millrace_spark.layers.repair.erasure import SubjectsOfTable
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


class ErasureContext(JobContext):
    """The context of a job whose frames have keys of subjects: none of its errors shows a value."""

    @property
    def hides_values(self) -> bool:
        """Always."""
        return True


def run(context: JobContext) -> JobReport:
    """Erase the subjects of the request; tables in which an earlier try has done that are left out.

    Raises:
        NotReadyError: a source of a table has no certified version.
        GateFailedError: a gate refused a version, so that the tables that read it cannot follow.
        MillraceError: as the runs of the tables.
    """
    assert context.args.request, "the job reads its subjects from a file"
    request = ErasureRequest.load(context.args.request)
    reach = reach_of(request.kind, context.catalog.specs)
    erased = list(_erased_tables(context, request, reach))
    rows = sum(table.rows for table in erased)
    return JobReport(
        **reported_run(Job.SUBJECT_ERASURE, context.args),
        outcome=Outcome.COMMITTED if erased else Outcome.NO_OP,
        message=f"{request.request}: {counted(rows, 'row')} of {counted(len(erased), 'table')} erased",
        details={"tables": {table.table: table.version for table in erased}},
        notes=tuple(dict.fromkeys(context.notes)),
    )


def _erased_tables(context: JobContext, request: ErasureRequest, reach: dict[str, Reach]) -> Iterator[ErasedTable]:
    subjects = Subjects(request.kind, request.keys)
    for table, of_table in reach.items():
        path = context.paths.table(table)
        if not is_table(path):
            continue
        done = context.ops.erasures.in_table(table, table_id(path))
        if any(each.erasure == request.erasure for each in done):
            continue
        own = _of_table(context, table)
        if not isinstance(own.spec, BronzeSpec):
            _follow(own)
        work = SubjectsOfTable(own, subjects, of_table, request.erasure, request.request)
        winner = work.erase()
        gate = run_gate(own, winner.version)
        if (gate.certified or 0) < winner.version:  # a person may have let a refused version pass
            raise GateFailedError(gate.result.refused)
        yield work.record(winner)


def _of_table(context: JobContext, table: str) -> JobContext:
    own = ErasureContext(
        context.args.model_copy(update={"table": table}),
        opened=context.ops,
        notes=context.notes,
        settings=context.settings,
    )
    position = stream_position(own.spec, own.paths, own.ops.ledger)
    if position is None or position.last is None:
        return own
    interval = position.last.intent.interval
    return replace(
        own, args=own.args.model_copy(update={"interval_start": interval.start, "interval_end": interval.end})
    )


def _follow(context: JobContext) -> None:
    """Run a table, so that it has read its sources without the subjects.

    Raises:
        GateFailedError: its gate refused what it read.
    """
    report = RUN[WRITER_OF_LAYER[context.spec.layer]](context)
    if (report.certified_version or 0) < (report.version or 0):
        raise GateFailedError(report.message)


if __name__ == "__main__":
    main(Job.SUBJECT_ERASURE, run)

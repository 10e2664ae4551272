"""Try quarantined rows again, each at most once, with the rules, merge and sequence of any other row."""

from __future__ import annotations

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace_spark.layers.quarantine.jobs import check_report, fix_rows, layer_of, request_of
from millrace_spark.layers.quarantine.replays import ReplayWork, streams_of_rows
from millrace_spark.layers.stream_batches import commit_streams
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Fix the rows if the request asks for it, add those that pass to the table, and check its version.

    Raises:
        BadInputError: the fix cannot be computed.
        NotReadyError: there is no table yet.
    """
    request, (work_of, layer) = request_of(context), layer_of(context)
    if request.has_fixes or context.args.dry_run:
        tried = fix_rows(context, work_of, layer, request)
        if context.args.dry_run:
            return check_report(context, Job.QUARANTINE_REPLAY, request, tried)
    replays = {
        stream: ReplayWork(context, work_of(stream), request, stream) for stream in streams_of_rows(context, request)
    }
    report = commit_streams(context, replays, work_of)
    return report.model_copy(update={"job": Job.QUARANTINE_REPLAY.value})


if __name__ == "__main__":
    main(Job.QUARANTINE_REPLAY, run)

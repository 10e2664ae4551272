"""Try quarantined rows once more: by the same rules, merge and sequence as any row, each at most once."""

from __future__ import annotations

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from spark_jobs.layers.quarantine.jobs import fix_rows, layer_of, request_of, verdict_report
from spark_jobs.layers.quarantine.replays import ReplayWork
from spark_jobs.layers.writing import commit_batch, judge_and_report
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Mend the rows first where that is asked for, then bring those that pass into the table, and judge its version.

    Raises:
        BadInputError: the fix cannot be worked out.
        NotReadyError: there is no table yet.
    """
    request, (work, layer) = request_of(context), layer_of(context)
    if request.has_fixes or context.args.dry_run:
        found = fix_rows(context, layer, request)
        if context.args.dry_run:
            return verdict_report(context, Job.QUARANTINE_REPLAY, request, found)
    return _replayed(context, ReplayWork(context, work, request))


def _replayed(context: JobContext, work: ReplayWork) -> JobReport:
    results = [commit_batch(context, work)]
    while work.has_more and not context.is_to_stop():
        results.append(commit_batch(context, work))
    report = judge_and_report(context, results)
    return report.model_copy(update={"job": Job.QUARANTINE_REPLAY.value})


if __name__ == "__main__":
    main(Job.QUARANTINE_REPLAY, run)

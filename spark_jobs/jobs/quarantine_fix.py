"""Mend quarantined rows, and say what the rules make of them; a replay brings them into their table."""

from __future__ import annotations

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from spark_jobs.layers.quarantine.jobs import fix_rows, layer_of, request_of, verdict_report
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Work the fix out, and record its values.

    Raises:
        BadInputError: the fix cannot be worked out.
        NotReadyError: there is no table yet.
    """
    request, (_, layer) = request_of(context), layer_of(context)
    return verdict_report(context, Job.QUARANTINE_FIX, request, fix_rows(context, layer, request))


if __name__ == "__main__":
    main(Job.QUARANTINE_FIX, run)

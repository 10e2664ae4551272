"""Fix quarantined rows, and report what the rules say of them; a replay adds them to their table."""

from __future__ import annotations

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace_spark.layers.quarantine.jobs import check_report, fix_rows, layer_of, request_of
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Compute the fixed values, and record them.

    Raises:
        BadInputError: the fix cannot be computed.
        NotReadyError: there is no table yet.
    """
    request, (work_of, layer) = request_of(context), layer_of(context)
    return check_report(context, Job.QUARANTINE_FIX, request, fix_rows(context, work_of, layer, request))


if __name__ == "__main__":
    main(Job.QUARANTINE_FIX, run)

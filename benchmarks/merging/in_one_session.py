"""Millrace's own writers, one after another in one session, as in `lakehouse run` and the warm server.

spark-submit in_one_session.py WORK COSTS     WORK: JSON lines of `name`, `job` and the job's `argv`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.cost import noted
from millrace.contracts.job.args import Job, JobArgs
from millrace.errors import ExitCode
from millrace_spark.jobs.run_intervals import RUN
from millrace_spark.runtime.entrypoint import run_and_report, start_process


def main(work: Path, costs: Path) -> None:
    """Run the jobs, and note their costs.

    Raises:
        SystemExit: one of them did not end well.
    """
    start_process()
    for line in work.read_text().splitlines():
        one = json.loads(line)
        job, arguments = Job(one["job"]), JobArgs.from_argv(one["argv"])
        with noted(costs, one["name"]):
            report = run_and_report(job, RUN[job], arguments)
        if report.exit_code is not ExitCode.OK:
            raise SystemExit(f"{one['name']}: {report.message}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

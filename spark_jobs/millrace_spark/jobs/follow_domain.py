"""Follow the sources of a domain in one driver: run each table when something is new, until a stop file exists.

The stop file (`DomainArgs.stop_file`) is checked between commits: a signal to a driver under spark-submit would also
reach Spark's JVM, and could stop it in the middle of a commit.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from millrace.catalog import Catalog, load_catalog
from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import WRITER_OF_LAYER
from millrace.contracts.job.interval_args import DomainArgs
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.deliveries import folders_of
from millrace.control.log.batch import StreamPosition
from millrace.control.planning.advice import Advice
from millrace.control.planning.planner import Planner
from millrace.control.planning.source_ranges import newest_interval
from millrace.errors import ExitCode, MillraceError, NotReadyError, Outcome, SpecError
from millrace.settings import Settings
from millrace.specs.invalid_spec import MaybeInvalidSpec
from millrace_spark.jobs.run_intervals import RUN
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import run_and_report, start_process

log = logging.getLogger(__name__)

PAUSE_S = 5.0
"""How long to wait after a round without anything new."""

_KEPT_REPORTS = 1000
"""The number of its last reports that a driver keeps."""

_PASSES_BY_ITSELF = (ExitCode.OK, ExitCode.NOT_READY, ExitCode.CONFLICT, ExitCode.SPARK_UNAVAILABLE)


class DomainFollower:
    """Run the tables of a domain round by round.

    Args:
        args: which tables, and where the stop file is.
        catalog: all specs.
    """

    def __init__(self, args: DomainArgs, catalog: Catalog) -> None:
        self._args = args
        self._catalog = catalog
        self._settings = Settings(root=args.root, landing=args.landing, tables=args.tables)
        self._planner = Planner(catalog, self._settings)
        self._ran = 0
        self._waits: dict[str, str] = {}
        self._reported = ""

    def follow(self) -> ExitCode:
        """Go on until the stop file exists, or until a table fails in a way that a later round does not fix."""
        while not self._is_to_stop():
            reports = list(self._round())
            for report in reports:
                if report.exit_code not in _PASSES_BY_ITSELF:
                    return report.exit_code
            if not any(report.outcome is Outcome.COMMITTED for report in reports):
                self._report_waits()
                self._pause()
        return ExitCode.OK

    def _round(self) -> Iterator[JobReport]:
        """Run each table that has something new, in build order; leave out the tables whose source failed."""
        failed: set[str] = set()
        for spec in self._catalog.of_domain(self._args.domain):
            is_selected = not self._args.table or spec.table in self._args.table
            if failed & {*spec.upstream_tables}:
                failed.add(spec.table)
                continue
            for interval in self._due(spec) if is_selected else ():
                if self._is_to_stop():
                    return
                report = self._run(spec, interval)
                yield report
                if report.exit_code is not ExitCode.OK:
                    failed.add(spec.table)

    def _due(self, spec: MaybeInvalidSpec) -> tuple[Interval, ...]:
        """Return the intervals for which the planner has work, oldest first, without a start of Spark."""
        folders = folders_of(spec.landing_source) if isinstance(spec, BronzeSpec) and not spec.reads_kafka else None
        try:
            if isinstance(spec, BronzeSpec) and folders:
                due, young = self._planner.due_intervals(spec, folders)
                wait = (
                    counted(young, "file is younger than min_age", "files are younger than min_age")
                    if young
                    else f"a new file in {folders.source.landing}"
                )
            else:
                standing = self._planner.standing(spec, today())
                advice = self._planner.advise(spec, today(), standing=standing)
                due = () if advice.nothing_new else (self._interval_to_read(advice, standing.position),)
                wait = advice.message
                if advice.refused:
                    wait = f"another version, since the newest is refused: {advice.refused.partition(chr(10))[0]}"
        except (NotReadyError, SpecError) as error:
            due, wait = (), str(error).split("\n", 1)[0].removeprefix(f"{spec.table}: ")
        except MillraceError:
            # The job will meet the same error, and report it.
            return (today(),)
        self._waits[spec.table] = "" if due else wait
        return due

    def _interval_to_read(self, advice: Advice, position: StreamPosition | None) -> Interval:
        """Return the newest interval that a batch reads; of Kafka messages, which have none, the current day."""
        ops, last = self._planner.ops, position.last if position and not advice.table.startswith("bronze.") else None
        newest = newest_interval(advice.sources.items(), ops.paths, ops.ledger)
        return newest or (last.intent.interval if last else today())

    def _report_waits(self) -> None:
        """Log, and write to a file, what each table waits for, if that has changed."""
        text = "".join(f"{table} waits for: {reason}\n" for table, reason in self._waits.items() if reason)
        if text and text != self._reported:
            log.info("%s", text.rstrip())
            partial = self._args.waiting_file.with_suffix(".partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(self._args.waiting_file)
        self._reported = text

    def _run(self, spec: MaybeInvalidSpec, interval: Interval) -> JobReport:
        self._ran += 1
        report = self._args.report_number(self._ran)
        self._args.report_number(self._ran - _KEPT_REPORTS).unlink(missing_ok=True)
        job_args = self._args.for_table(spec.table, interval, report)
        job = WRITER_OF_LAYER[spec.layer]
        context = JobContext(job_args, self._is_to_stop, self._planner.ops, settings=self._settings)
        return run_and_report(job, RUN[job], job_args, context)

    def _is_to_stop(self) -> bool:
        return self._args.stop_file.exists()

    def _pause(self) -> None:
        until = time.monotonic() + PAUSE_S
        while time.monotonic() < until and not self._is_to_stop():
            time.sleep(0.2)


def today() -> Interval:
    """Return the current UTC day: the interval of batches whose source has no intervals."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Interval(start=midnight, end=midnight + timedelta(days=1))


if __name__ == "__main__":
    start_process()
    domain_args = DomainArgs.from_argv(sys.argv[1:])
    sys.exit(DomainFollower(domain_args, load_catalog(domain_args.tables)).follow())

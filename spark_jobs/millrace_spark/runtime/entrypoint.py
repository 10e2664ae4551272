"""Run a job as a process: read its arguments, write its report, exit with a code for its outcome."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping

import psutil
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.spec.table_spec import BronzeSpec, GoldSpec
from millrace.control.storage.read_cache import cached_reads
from millrace.disk_space import disk_full_error
from millrace.errors import MillraceError, NotReadyError, Outcome, SpecError
from millrace.new_files import restrict_new_files
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from millrace.spark_conf import STARTED_BY
from millrace_spark.runtime.context import JobContext
from millrace_spark.spark_errors import cause_of, without_values
from millrace_spark.transforms.values.unstorable import unstorable_error

RunJob = Callable[[JobContext], JobReport]

OPS = ("batches", "files", "gates", "columns", "quarantine", "specs", "rebuilds")
"""The tables of the ledger that jobs write to."""

_CHECK_INTERVAL_S = 1.0
_GRACE_S = 30.0
"""Seconds between TERM, after which a driver asks the Spark server to stop its work, and KILL."""

_OF_PYSPARK = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_OF_GREAT_EXPECTATIONS = (
    "great_expectations.validator.metrics_calculator",
    "great_expectations.validator.validation_graph",
)

_UNRESOLVED = re.compile(r"with name ((?:`[^`]+`\.)*`(?P<column>[^`]+)`) cannot be resolved")

_NO_FILE = re.compile(r"FILE_NOT_EXIST\].*?(?P<file>\S+\.parquet)", re.DOTALL)

log = logging.getLogger("millrace")


def main(job: Job, run: RunJob, argv: list[str] | None = None) -> None:
    """Parse the arguments, run the job, save its report, and exit with its code."""
    start_process()
    report = run_and_report(job, run, JobArgs.from_argv(sys.argv[1:] if argv is None else argv))
    log.info("%s", report.message)
    sys.exit(report.exit_code)


def start_process() -> None:
    """Prepare a driver: set UTC, because Great Expectations compares times in the process's own zone, and logging.

    Others get no more rights to its files than the settings allow. The driver ends with the process that started it.
    Millrace logs to stderr from INFO on, other libraries from WARNING on.
    """
    _end_with_parent(os.environ)
    restrict_new_files(Settings())
    os.environ["TZ"] = "UTC"
    time.tzset()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for name in ("__main__", "millrace", "millrace_spark"):  # The module of the job itself is `__main__`.
        logging.getLogger(name).setLevel(logging.INFO)
    silence_loggers_of_values()


def silence_loggers_of_values() -> None:
    """Silence what PySpark and Great Expectations log of errors, caught ones as well: their texts have values of rows.

    Of PySpark's loggers its own class must be the first to ask Python: it calls them with arguments that a plain logger
    does not take, so that its errors become a TypeError (PySpark 4.1).
    """
    for logger in (*map(PySparkLogger.getLogger, _OF_PYSPARK), *map(logging.getLogger, _OF_GREAT_EXPECTATIONS)):
        logger.setLevel(logging.CRITICAL)


def run_and_report(job: Job, run: RunJob, args: JobArgs, context: JobContext | None = None) -> JobReport:
    """Run a job and save its report; an error becomes a report that names it."""
    started = time.monotonic()
    try:
        context = context or JobContext(args)
        with cached_reads():
            report = run(context)
    except MillraceError as error:
        report = failure_report(job, args, error, error.outcome)
    except Exception as error:
        hides_values = context is not None and _hides_values(job, context)
        if hides_values:
            lines = "".join(traceback.format_tb(error.__traceback__))
            log.error("%s failed: %s\n%s", job.value, _shown(error, hides_values=True), lines)
        else:
            log.exception("%s failed", job.value)
        paths, table = LakehousePaths(args.root), args.table
        folders = [paths.table(table), paths.quarantine(table), paths.tombstones(table, ""), *map(paths.ops, OPS)]
        folders = [args.root, *folders, paths.leases, args.report.parent]
        cause: MillraceError | None = disk_full_error(error, table, folders)
        if cause is None and context is not None:  # None if a setting of the environment is wrong
            cause = _missing_column_error(error, context) or unstorable_error(error, table)
            cause = cause or _deleted_file_error(error, context)
        outcome = cause.outcome if cause else Outcome.FAILED
        report = failure_report(job, args, cause or error, outcome, hides_values=hides_values)
    timed = {**report.timings_s, "total": round(time.monotonic() - started, 3)}
    report = report.model_copy(update={"timings_s": timed})
    try:
        report.save(args.report)
    except OSError as error:
        full = disk_full_error(error, args.table, [args.report.parent])
        if full is None:
            raise
        return failure_report(job, args, full, full.outcome)  # for the exit code and the log
    return report


def _missing_column_error(error: Exception, context: JobContext) -> NotReadyError | None:
    """Return the error to report if a source's table lacks a column that its spec declares; else None.

    The source's next run adds the column.
    """
    if not isinstance(error, PySparkException) or not (match := _UNRESOLVED.search(str(error))):
        return None
    table, column = context.spec.table, match["column"]
    for source in context.spec.upstream_tables:
        spec = context.catalog.spec(source)
        if isinstance(spec, GoldSpec):
            declared = (*spec.group_by, *spec.measures, *spec.query_columns)
        else:
            declared = tuple(spec.columns) if isinstance(spec, BronzeSpec) else spec.stored_columns
        if column in declared:
            way_out = f"Run {source} first: its next run adds the column, and its gate must pass it."
            return NotReadyError(f"{table}: {source} has no column {column} yet in the version that is read", way_out)
    return None


def _deleted_file_error(error: Exception, context: JobContext) -> NotReadyError | None:
    """Return the error to report if a file of a source is gone, from which its changes would be read; else None.

    VACUUM keeps the files that the tables in the specs still need: it does not know one that was out of them.
    """
    if not isinstance(error, PySparkException) or not (match := _NO_FILE.search(str(error))):
        return None
    table, path = context.spec.table, match["file"]
    source = next((name for name in context.spec.upstream_tables if f"/{name.replace('.', '/')}/" in path), None)
    file = path.rpartition("/")[2]  # folders have values of partition columns
    way_out = f"Was the table out of the specs while VACUUM ran? Then build it anew: lakehouse rebuild {table}"
    return (
        NotReadyError(f"{table}: a file of {source} that it has to read is gone: {file}", way_out) if source else None
    )


def failure_report(
    job: Job, args: JobArgs, error: BaseException, outcome: Outcome, *, hides_values: bool = False
) -> JobReport:
    """Return the report of a job that ended with `error`; of one that hides values, without the text of Spark's."""
    is_own = isinstance(error, MillraceError)
    message = str(error) if is_own else f"{args.table}: {_shown(error, hides_values=hides_values)}"
    run, error_class = reported_run(job, args), type(error).__name__
    return JobReport(**run, outcome=outcome, message=message[:4000], error_class=error_class)


def _hides_values(job: Job, context: JobContext) -> bool:
    if job is Job.SUBJECT_ERASURE:
        return True  # its frames have the keys
    try:
        if job is Job.TABLE_REBUILD and any(map(context.restricted, context.catalog.specs)):
            return True  # it also computes the tables that read its own
        return context.hides_values
    except SpecError:  # without a spec no row was read
        return False


def _shown(error: BaseException, *, hides_values: bool) -> str:
    cause = cause_of(error)
    return f"{type(error).__name__}: {without_values(cause) if hides_values else cause}"


def _end_with_parent(environment: Mapping[str, str]) -> None:
    """End this process soon after the one that started it, if the environment names that: a retry then runs alone."""
    if pid := environment.get(STARTED_BY):
        threading.Thread(target=_watch, args=(int(pid),), daemon=True).start()


def _watch(pid: int) -> None:
    try:
        parent = psutil.Process(pid)
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_CHECK_INTERVAL_S)
    except psutil.NoSuchProcess:
        pass
    log.error("Process %d, which started this driver, is gone: the driver ends. A retry is safe.", pid)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)

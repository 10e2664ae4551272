"""Run a Spark driver as a child process of the CLI: start it, read its reports, end its whole process tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from millrace.contracts.job.args import CommandLine, Job, JobArgs
from millrace.contracts.job.interval_args import DomainArgs
from millrace.contracts.job.report import JobReport
from millrace.driver_environment import driver_environment, own_spark, with_scratch_folder
from millrace.processes import end_tree
from millrace.settings import Settings
from millrace.spark_conf import STARTED_BY, launch_conf
from millrace.spark_location import job_file, require_server, spark_home

MASTER = "local[*]"
_POLL_S = 0.2
_GRACE_S = 20.0
_LAST_LINES = 8
_LOG_BYTES = 32 * 1024**2
"""At this size the log of a driver that follows its sources is rotated; the one before it is kept."""


@dataclass(frozen=True)
class DriverEnd:
    """How the driver process ended.

    Attributes:
        exit_code: the exit code of the process.
        log: the file with all its output.
        last_lines: the last lines of the log, without stack frames.
    """

    exit_code: int
    log: Path
    last_lines: str


class Driver:
    """One run of a driver for the tables of a domain."""

    def __init__(self, settings: Settings, arguments: DomainArgs, *, large_load: bool = False) -> None:
        self._settings = settings
        self._arguments = arguments
        self._large_load = large_load
        self._exit_code = 0

    def follow(self) -> Iterator[JobReport | str]:
        """Start the driver that follows its sources, and yield each report as it appears, until the driver has ended.

        Whenever the list of what the tables wait for changes, yield it as text.

        SIGTERM and Ctrl-C tell the driver to end after the current commit; a second signal ends it at once.

        Raises:
            SparkUnavailableError: there is no Spark to start.
        """
        number, waits = 1, ""
        self._arguments.reports.mkdir(parents=True, exist_ok=True)
        running = self._process("jobs/follow_domain.py")
        with _signals(self._ask_to_stop, signal.SIGTERM, signal.SIGINT), running as process:
            has_ended = False
            while not has_ended:
                has_ended = process.poll() is not None
                while report := JobReport.load(self._arguments.report_number(number)):
                    number += 1
                    yield report
                log = self._arguments.log_file
                if log.stat().st_size > _LOG_BYTES:
                    shutil.copyfile(log, log.with_suffix(".1.log"))
                    os.truncate(log, 0)
                file, before = self._arguments.waiting_file, waits
                waits = file.read_text(encoding="utf-8").rstrip() if file.exists() else ""
                if waits != before:
                    yield waits
                time.sleep(0 if has_ended else _POLL_S)
            self._exit_code = process.wait()

    def _ask_to_stop(self, signum: int, frame: FrameType | None) -> None:
        if self._arguments.stop_file.exists():
            _exit_on_signal(signum, frame)
        self._arguments.stop_file.touch()

    def run(self, application: str, expected: Iterable[Path]) -> Iterator[JobReport]:
        """Start the driver and yield each report as it appears, until the driver has ended.

        The driver and its children end when this iteration ends, for any reason.

        Args:
            application: the file of the driver, relative to the package `millrace_spark`.
            expected: the reports that it writes, in their order.

        Raises:
            SparkUnavailableError: there is no Spark to start.
        """
        awaited = deque(expected)
        with _signals(_exit_on_signal, signal.SIGTERM), self._process(application) as process:
            while awaited:
                has_ended = process.poll() is not None
                while awaited and (report := JobReport.load(awaited[0])):
                    awaited.popleft()
                    yield report
                if has_ended:
                    break
                time.sleep(_POLL_S)
            self._exit_code = process.wait()

    def end(self) -> DriverEnd:
        """Return how the driver ended, after all its reports."""
        return _end(self._exit_code, self._arguments.log_file)

    def _process(self, application: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        settings, arguments = self._settings, self._arguments
        command = driver_command(settings, application, arguments, os.environ, large_load=self._large_load)
        return _running(command, arguments.log_file)


def run_job(settings: Settings, arguments: JobArgs, job: Job) -> tuple[JobReport | None, DriverEnd]:
    """Run one job to its end; return its report, if it wrote one, and how the driver ended.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    log = arguments.report.with_suffix(".log")
    command = driver_command(settings, job.application, arguments, os.environ)
    with _signals(_exit_on_signal, signal.SIGTERM), _running(command, log) as process:
        code = process.wait()
    return JobReport.load(arguments.report), _end(code, log)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the driver's process; its process tree ends with this block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    own = {**own_spark(), STARTED_BY: str(os.getpid())}
    environment = driver_environment(os.environ, os.environ.get("SPARK_REMOTE") or MASTER, own)
    log.unlink(missing_ok=True)
    # The log is opened to append, so that output after a rotation goes to its new end.
    with log.open("ab") as output, with_scratch_folder(environment) as environment:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            yield process
        finally:
            end_tree(process, _GRACE_S)
            process.wait()


def _end(exit_code: int, log: Path) -> DriverEnd:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    messages = [line for line in lines if line.strip() and not line.startswith("\tat ")]
    return DriverEnd(exit_code, log, "\n".join(messages[-_LAST_LINES:]))


def driver_command(
    settings: Settings,
    application: str,
    arguments: CommandLine,
    environment: Mapping[str, str],
    *,
    large_load: bool = False,
) -> list[str]:
    """Return the driver's command: Python with the Spark Connect server of SPARK_REMOTE, else a local spark-submit.

    Raises:
        SparkUnavailableError: the server does not answer, or there are no jars to start Spark with.
    """
    file = job_file(application)
    if remote := environment.get("SPARK_REMOTE"):
        require_server(remote)
        return [sys.executable, file, *arguments.to_argv()]
    conf = launch_conf(settings.jars, MASTER, large_load=large_load)
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return [str(spark_home() / "bin" / "spark-submit"), "--master", MASTER, *options, file, *arguments.to_argv()]


def _exit_on_signal(signum: int, _frame: FrameType | None) -> NoReturn:
    """Turn a signal into an exception, so that the driver ends, too."""
    raise SystemExit(128 + signum)


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], None], *signals: signal.Signals) -> Iterator[None]:
    """Handle these signals by `handler` during this block."""
    earlier_handlers = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in earlier_handlers.items():
            signal.signal(number, earlier)

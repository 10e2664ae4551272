"""A driver that is a fork of its task's process: it has the modules in memory that a new Python would import."""

from __future__ import annotations

import logging
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import TextIO

from setproctitle import setproctitle


@dataclass(frozen=True)
class JobFile:
    """A job file to run, as `python <application> <arguments>` would.

    Attributes:
        application: the path of the file.
        arguments: its arguments.
        environment: its whole environment.
        folder: its working folder.
    """

    application: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


_task_streams: list[TextIO] = []
"""The streams of the task in a fork; if they were collected, they would close the driver's output."""


class ForkedDriver:
    """A driver that waits for its job; its methods are those of `subprocess.Popen` that a hook of Airflow uses.

    `start` it before the process uses a library with threads of its own: a fork has no threads, and delta-rs refuses to
    work in one. `run` gives it the job. Without a job it ends with `end`, or with the process that started it.
    """

    def __init__(self, process: ForkProcess, orders: Connection, stdout: TextIO) -> None:
        self.stdout = stdout
        self._process = process
        self._orders = orders

    @classmethod
    def start(cls) -> ForkedDriver:
        """Fork this process."""
        context = multiprocessing.get_context("fork")
        orders, given = context.Pipe(duplex=False)
        output, written = os.pipe()
        process = context.Process(target=_drive, args=(orders, given, written), name="driver")
        process.start()
        orders.close()
        os.close(written)
        return cls(process, given, os.fdopen(output, encoding="utf-8", errors="replace"))

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid or 0

    def run(self, job: JobFile) -> None:
        """Run a job file; `stdout` has what it prints, and `wait` its exit code."""
        self._orders.send(job)

    def poll(self) -> int | None:
        """Return its exit code, as `wait`; None while it runs."""
        return self._process.exitcode

    def wait(self) -> int:
        """Return its exit code when it has ended; the negative number of a signal that ended it."""
        self._process.join()
        return self._process.exitcode or 0

    def kill(self) -> None:
        """Kill its process."""
        self._process.kill()

    def end(self) -> None:
        """End a driver that got no job, and release what was used for it."""
        self._orders.close()
        self._process.join()
        self.stdout.close()


def _drive(orders: Connection, given: Connection, output: int) -> None:
    """Wait for a job in the fork, and run it; `given` is the end of the pipe that the parent keeps."""
    given.close()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    _leave_task(output, orders.fileno())
    try:
        job: JobFile = orders.recv()
    except EOFError:
        return
    sys.argv = [job.application, *job.arguments]
    if sys.platform != "darwin":  # As in Airflow: there it breaks network calls.
        setproctitle(f"airflow driver -- {' '.join(sys.argv)}")
    os.environ.clear()
    os.environ.update(job.environment)
    tempfile.tempdir = None  # read from the environment again
    os.chdir(job.folder)
    runpy.run_path(job.application, run_name="__main__")


def _leave_task(output: int, orders: int) -> None:
    """Release the task's logs and its connection to Airflow, and print to `output` from now on.

    Airflow waits for the end of all processes that hold the task's files. Their numbers stay taken, because objects
    still refer to them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/dev/fd")):
        if number not in (0, orders, output):
            _replace(number, output if number in (1, 2) else nothing)
    _task_streams.extend((sys.stdout, sys.stderr))
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, encoding="utf-8") for number in (1, 2))
    # Airflow's handlers would write to the task's log. Those of pyspark write to this process's stderr.
    for name in ("", *(name for name in logging.root.manager.loggerDict if name.startswith("airflow"))):
        logging.getLogger(name).handlers.clear()
    logging.getLogger().setLevel(logging.WARNING)
    # pyspark does so unless SPARK_CONNECT_LOG_LEVEL is set, and Airflow enables it: it reports what the client retries.
    logging.getLogger("pyspark.sql.connect.logging").disabled = "SPARK_CONNECT_LOG_LEVEL" not in os.environ


def _replace(number: int, by: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        return  # The listing's own, closed by now.
    os.dup2(by, number)

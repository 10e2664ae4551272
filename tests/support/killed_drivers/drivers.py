"""Run jobs that die at a chosen place, by a signal or by an exception; return how they ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import pytest

from embedded.clone import CLONE
from millrace.contracts.job.args import WRITER_OF_LAYER, Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import RebuildRequest, RequestFile
from millrace_spark.runtime.entrypoint import run_and_report
from tests.support.killed_drivers.places import NOWHERE, die_at, judge_few_rows_by_change
from tests.support.lakehouse import RUN, Lakehouse


@dataclass(frozen=True)
class DriverEnd:
    """How a driver ended.

    Attributes:
        code: its exit code, negative for the signal that ended it.
        report: its report, if it wrote one.
        output: its log.
        took_s: seconds from its start to its end.
    """

    code: int
    report: JobReport | None
    output: str
    took_s: float


class AnyDrivers(ABC):
    """Runs jobs one after another."""

    def run(
        self,
        lakehouse: Lakehouse,
        table: str,
        number: int = 1,
        dies: str = NOWHERE,
        job: Job | None = None,
        request: RequestFile | None = None,
        reprocess: bool = False,
        **signal_: int,
    ) -> DriverEnd:
        """Run the table's writer, or `job`, for day `number`; it dies at the place `dies`."""
        asked = {"request": request.save(lakehouse.folder / "reports" / "request.json")} if request else {}
        args = lakehouse.args(table, number, reprocess=reprocess, **asked)
        args.report.unlink(missing_ok=True)
        end = self._job(job or WRITER_OF_LAYER[table.partition(".")[0]], args, dies, **signal_)
        return replace(end, report=JobReport.load(args.report))

    def rebuild(self, lakehouse: Lakehouse, table: str, dies: str = NOWHERE, **options: bool) -> DriverEnd:
        """Rebuild a table, or continue, cancel or undo that."""
        request = RebuildRequest(said_by="ann", **options)
        return self.run(lakehouse, table, dies=dies, job=Job.TABLE_REBUILD, request=request)

    @abstractmethod
    def _job(self, job: Job, args: JobArgs, dies: str) -> DriverEnd: ...


class Crash(BaseException):
    """Ends a job at once, since nothing in Millrace catches it."""


@contextmanager
def crashing_at(place: str) -> Iterator[None]:
    """End what is done in the context when it comes to the place."""

    def crash() -> None:
        raise Crash

    with pytest.MonkeyPatch.context() as patches, suppress(Crash):
        judge_few_rows_by_change(patches)
        die_at(place, patches, crash)
        yield


class OwnProcess(AnyDrivers):
    """Runs jobs in the test's own process, where a `Crash` ends them.

    They leave what killed ones leave, but their leases and their sessions end with them.
    """

    def _job(self, job: Job, args: JobArgs, dies: str) -> DriverEnd:
        end = DriverEnd(-signal.SIGKILL, None, "", 0)
        with crashing_at(dies):
            report = run_and_report(job, RUN[job], args)
            end = DriverEnd(report.exit_code, None, report.message, 0)
        return end


class Drivers(AnyDrivers):
    """Runs jobs in processes of their own, with the given environment."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed_drivers.fork_server"],
            env=environment,
            cwd=CLONE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Drivers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.communicate()

    def _job(self, job: Job, args: JobArgs, dies: str, by: int = signal.SIGKILL, victim: int = 0) -> DriverEnd:
        """At the place, the job sends the signal to the process `victim`, which is itself for 0."""
        order = {"place": dies, "signum": by, "victim": victim, "job": job, "argv": args.to_argv()}
        self._log.write_text("")
        started = time.monotonic()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{json.dumps({**order, 'log': str(self._log)})}\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the fork server has died"
        return DriverEnd(int(answer), None, self._log.read_text(), time.monotonic() - started)

"""Run job drivers and commands that die at a chosen place by a chosen signal, and return how they ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from include.contracts.job.args import WRITER_OF_LAYER, Job
from include.contracts.job.report import JobReport
from include.contracts.job.requests import QuarantineRequest, RebuildRequest, RequestFile
from include.settings import PROJECT
from tests.support.killed_drivers.places import NOWHERE
from tests.support.lakehouse import Lakehouse

_KILL = {"signum": signal.SIGKILL, "victim": 0}


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


class Drivers:
    """Runs drivers one after another in the given environment."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed_drivers.fork_server"],
            env=environment,
            cwd=PROJECT,
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

    def run(
        self,
        lakehouse: Lakehouse,
        table: str,
        number: int,
        dies: str = NOWHERE,
        by: signal.Signals = signal.SIGKILL,
        victim: int = 0,
        job: Job | None = None,
    ) -> DriverEnd:
        """Run the table's writer, or `job`, for day `number`; at `dies` it sends `by` to `victim` (0: to itself)."""
        args = lakehouse.args(table, number)
        args.report.unlink(missing_ok=True)
        job = job or WRITER_OF_LAYER[table.partition(".")[0]]
        end = self._run({"place": dies, "signum": by, "victim": victim, "job": job, "argv": args.to_argv()})
        return replace(end, report=JobReport.load(args.report))

    def replay(self, lakehouse: Lakehouse, table: str, request: QuarantineRequest, dies: str = NOWHERE) -> DriverEnd:
        """Replay quarantined rows of a table; at the place `dies` the driver is killed."""
        return self._of_request(lakehouse, Job.QUARANTINE_REPLAY, table, request, dies)

    def rebuild(self, lakehouse: Lakehouse, table: str, dies: str = NOWHERE, **options: bool) -> DriverEnd:
        """Rebuild a table, or continue, cancel or undo that; at the place `dies` the driver is killed."""
        request = RebuildRequest(said_by="ann", **options)
        return self._of_request(lakehouse, Job.TABLE_REBUILD, table, request, dies)

    def command(self, lakehouse: Lakehouse, *words: str, dies: str = NOWHERE) -> DriverEnd:
        """Run the command `lakehouse` with these words; at the place `dies` it is killed."""
        environment = lakehouse.environment()
        return self._run({"place": dies, **_KILL, "command": words, "environment": environment})

    def _of_request(self, lakehouse: Lakehouse, job: Job, table: str, request: RequestFile, dies: str) -> DriverEnd:
        args = lakehouse.args(table, request=request.save(lakehouse.folder / "reports" / "request.json"))
        args.report.unlink(missing_ok=True)
        end = self._run({"place": dies, **_KILL, "job": job, "argv": args.to_argv()})
        return replace(end, report=JobReport.load(args.report))

    def _run(self, order: dict[str, Any]) -> DriverEnd:
        self._log.write_text("")
        started = time.monotonic()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({**order, "log": f"{self._log}"}) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the fork server has died"
        return DriverEnd(int(answer), None, self._log.read_text(), time.monotonic() - started)

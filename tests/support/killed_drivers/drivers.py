"""Job drivers and commands of a test: what they do, where and by which signal they die, and how they ended."""

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
from include.contracts.job.quarantine_request import QuarantineRequest
from include.contracts.job.rebuild_request import RebuildRequest
from include.contracts.job.report import JobReport
from include.contracts.job.request_file import RequestFile
from include.settings import PROJECT
from tests.support.killed_drivers.places import NOWHERE
from tests.support.lakehouse import Lakehouse


@dataclass(frozen=True)
class Ended:
    """How a driver ended.

    Attributes:
        code: its exit code, negative for the signal that ended it.
        report: what it left, if anything.
        said: its log.
        took_s: seconds from birth to death.
    """

    code: int
    report: JobReport | None
    said: str
    took_s: float


class Drivers:
    """Runs drivers one after the other, in the given environment."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed_drivers.nursery"],
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
        self._nursery.kill()
        self._nursery.communicate()

    def run(
        self,
        lakehouse: Lakehouse,
        table: str,
        number: int,
        dies: str = NOWHERE,
        by: signal.Signals = signal.SIGKILL,
        victim: int = 0,
    ) -> Ended:
        """Run the table's writer for day `number`; at the place `dies`, `by` is sent to the victim, or to itself."""
        args = lakehouse.args(table, number)
        args.report.unlink(missing_ok=True)
        job = WRITER_OF_LAYER[table.partition(".")[0]]
        ended = self._live({"place": dies, "signum": by, "victim": victim, "job": job, "argv": args.to_argv()})
        return replace(ended, report=JobReport.load(args.report))

    def replay(self, lakehouse: Lakehouse, table: str, request: QuarantineRequest, dies: str = NOWHERE) -> Ended:
        """Replay quarantined rows of a table; at the place `dies` the driver is killed."""
        return self._of_request(lakehouse, Job.QUARANTINE_REPLAY, table, request, dies)

    def rebuild(self, lakehouse: Lakehouse, table: str, dies: str = NOWHERE, **asked: bool) -> Ended:
        """Build a table anew, or go on with that, cancel or undo it; at the place `dies` the driver is killed."""
        request = RebuildRequest(said_by="ann", **asked)
        return self._of_request(lakehouse, Job.TABLE_REBUILD, table, request, dies)

    def command(self, lakehouse: Lakehouse, *words: str, dies: str = NOWHERE) -> Ended:
        """Run the command `lakehouse` with these words; at the place `dies` it is killed."""
        environment = lakehouse.environment()
        life = {"place": dies, "signum": signal.SIGKILL, "victim": 0, "command": words, "environment": environment}
        return self._live(life)

    def _of_request(self, lakehouse: Lakehouse, job: Job, table: str, request: RequestFile, dies: str) -> Ended:
        args = lakehouse.args(table, request=request.save(lakehouse.folder / "reports" / "request.json"))
        args.report.unlink(missing_ok=True)
        life = {"place": dies, "signum": signal.SIGKILL, "victim": 0, "job": job, "argv": args.to_argv()}
        ended = self._live(life)
        return replace(ended, report=JobReport.load(args.report))

    def _live(self, life: dict[str, Any]) -> Ended:
        self._log.write_text("")
        started = time.monotonic()
        code = self._ask({**life, "log": f"{self._log}"})
        return Ended(code, None, self._log.read_text(), time.monotonic() - started)

    def _ask(self, life: dict[str, Any]) -> int:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(life) + "\n")
        self._nursery.stdin.flush()
        answer = self._nursery.stdout.readline()
        assert answer, "the nursery has died"
        return int(answer)

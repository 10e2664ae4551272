"""Run test suites, also when one of them fails, and end with one summary.

    python -m tests.suites unit spark e2e

The suites share two cores, so that they run one after the other. Only the tests of the whole stack, which wait most of
the time, run beside the first of the others. Machines differ by a factor of five, so that the cost of a suite is given
in units: the CPU-seconds of `tests.reference_job`, which runs before the suites. A suite that costs more than its
budget fails: say in the change what went instead of the new test, or why it is worth more.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated
from xml.etree import ElementTree

import psutil
import typer
from rich.console import Console
from rich.table import Table

from embedded.clone import CLONE

RESULTS = Path("data/tests")
REFERENCE = [sys.executable, "-m", "tests.reference_job"]
PYTEST = [sys.executable, "-m", "pytest", "--durations", "25"]
PATIENCE_S = 60
"""How long the processes of a suite may take to end after it."""
_BECOME_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""


@dataclass(frozen=True)
class Suite:
    """Tests that run together.

    Attributes:
        arguments: those of pytest.
        budget: the units that it may cost, a quarter to a half more than it was seen to cost; None for a suite that CI
            does not run.
        waits: whether it waits most of the time, so that the first of the other suites runs at the same time.
    """

    arguments: list[str]
    budget: float | None = None
    waits: bool = False


def _workers(count: int) -> list[str]:
    """The tests of a file stay together, in one of several worker processes."""
    return ["--dist", "loadfile", "--no-loadscope-reorder", "--numprocesses", str(count)]


# Spark's tests wait for their server now and then: three workers keep two cores busy. Those of Airflow are first: they
# stay together in one worker (tests/conftest.py).
SPARK = [*_workers(3), "tests/dags", "tests/integration", "tests/spark"]
SUITES = {
    "unit": Suite([*_workers(2), "tests/architecture", "tests/unit"], budget=20),
    "spark": Suite(["-m", "not slow and not faults", *SPARK], budget=95),
    "spark-slow": Suite(["-m", "slow and not faults", *SPARK]),
    "e2e": Suite(["-m", "not slow", "tests/e2e"], budget=11, waits=True),
    "e2e-slow": Suite(["-m", "slow", "tests/e2e"]),
    "e2e-all": Suite(["tests/e2e"], budget=31, waits=True),
    "security": Suite(sorted({*re.findall(r"\((tests/[^)]+)\)", (CLONE / "SECURITY.md").read_text())})),
    "faults": Suite(["-m", "faults", *_workers(2), "tests/integration", "tests/spark"]),
}


def main(names: Annotated[list[str], typer.Argument(help=", ".join(SUITES))]) -> None:
    """Run the named suites; the exit code is 1 when one of them failed, cost too much or left a process behind."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(initializer=_adopt_orphans) as processes:
        unit = processes.submit(_reference_cpu_s).result()
        runs = _run_suites(names, processes)
    summary = Table("suite", "passed", "failed", "skipped", "minutes", "CPU-seconds", "units", "budget")
    complaints: list[str] = []
    for name in names:
        run = runs[name]
        counts, failed = _read(RESULTS / f"{name}.xml")
        units, budget = run.cpu_s / unit, SUITES[name].budget
        costs = (f"{run.wall_s / 60:.1f}", f"{run.cpu_s:.0f}", f"{units:.1f}", f"{budget or '-'}")
        summary.add_row(name, *counts, *costs)
        complaints += [f"{name}: {test}" for test in failed]
        complaints += [f"{name}: the tests have left the process {left}" for left in run.left]
        if run.exit_code and not failed:
            complaints.append(f"{name}: pytest ended with exit code {run.exit_code}")
        if budget and units > budget:
            complaints.append(f"{name}: it cost {units:.1f} units, and its budget in tests/suites.py is {budget}")
    console = Console(width=120)
    console.print(summary)
    console.print(f"A unit is the reference job: {unit:.1f} CPU-seconds.")
    for line in complaints:
        console.print(f"FAILED {line}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(bool(complaints))


@dataclass(frozen=True)
class _Run:
    exit_code: int
    wall_s: float
    cpu_s: float
    left: list[str]


def _adopt_orphans() -> None:
    """Whatever a test starts becomes a child of this process when its own parent ends, so that its cost is known."""
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)


def _run_suites(names: list[str], processes: ProcessPoolExecutor) -> dict[str, _Run]:
    """Run each suite from a process of its own, which knows what it costs."""
    working = [name for name in names if not SUITES[name].waits]
    logs = {name: RESULTS / f"{name}.log" for name in names if working and SUITES[name].waits}
    waiting = {name: processes.submit(_run_suite, name, log) for name, log in logs.items()}
    runs = {}
    for name in working or names:
        runs[name] = processes.submit(_run_suite, name).result()
        while waiting:
            other, run = waiting.popitem()
            runs[other] = run.result()
            print(logs[other].read_text())  # noqa: T201
    return runs


def _reference_cpu_s() -> float:
    with Path(os.devnull).open("w") as nowhere:
        run = _run(REFERENCE, nowhere)
    if run.exit_code:
        raise RuntimeError(f"{' '.join(REFERENCE)} ended with exit code {run.exit_code}: run it to see why")
    return run.cpu_s


def _run_suite(name: str, log: Path | None = None) -> _Run:
    results = RESULTS / f"{name}.xml"
    results.unlink(missing_ok=True)
    with log.open("w") if log else nullcontext() as output:
        return _run([*PYTEST, "--junitxml", str(results), *SUITES[name].arguments], output)


def _run(command: list[str], output: IO[str] | None) -> _Run:
    """Run a command to its end, and to the end of all processes that it has started; kill those that stay."""
    cpu_s, started = _cpu_of_ended_children(), time.monotonic()
    process = subprocess.Popen(command, stdout=output, stderr=output)
    while (ended := os.wait())[0] != process.pid:  # those that have lost their parent must not stay as zombies
        pass
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    wall_s = time.monotonic() - started
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=PATIENCE_S)
    left = [repr(process) for process in alive]
    for forgotten in alive:
        forgotten.kill()
    with suppress(ChildProcessError):  # none is left to wait for
        while os.wait():
            pass
    return _Run(process.returncode, wall_s, _cpu_of_ended_children() - cpu_s, left)


def _cpu_of_ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _read(results: Path) -> tuple[tuple[str, str, str], list[str]]:
    """Return the numbers of tests that passed, failed and were skipped, and the names of those that failed."""
    if not results.exists():
        return ("-", "no results", "-"), []
    root = ElementTree.parse(results).getroot()
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in root.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    suite = root.find("testsuite")
    total, skipped = (int(suite.get(key, 0)) for key in ("tests", "skipped"))  # type: ignore[union-attr]
    return (str(total - len(failed) - skipped), str(len(failed)), str(skipped)), failed


if __name__ == "__main__":
    typer.run(main)

"""Run test suites one after the other, also when one of them fails, and end with one summary.

    python -m tests.suites unit spark e2e

The suites share two cores, so that they never run side by side.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer
from rich.console import Console
from rich.table import Table

RESULTS = Path("data/tests")


def _workers(count: int) -> list[str]:
    """The tests of a file stay together, in one of several worker processes."""
    return ["--dist", "loadfile", "--no-loadscope-reorder", "--numprocesses", str(count)]


# Spark's tests wait for their server now and then: three workers keep two cores busy.
SPARK = [*_workers(3), "tests/integration", "tests/spark", "tests/dags"]
SUITES = {
    "unit": [*_workers(2), "--doctest-modules", "tests/architecture", "tests/unit", "tests/support", "include",
             "spark_jobs", "plugins"],
    "spark": ["-m", "not slow and not faults", *SPARK],
    "spark-slow": ["-m", "slow and not faults", *SPARK],
    "e2e": ["-m", "not slow", "tests/e2e"],
    "e2e-slow": ["-m", "slow", "tests/e2e"],
    "faults": ["-m", "faults", *_workers(2), "tests/integration", "tests/spark"],
}  # fmt: skip
"""Suite -> the arguments of pytest."""


def main(names: Annotated[list[str], typer.Argument(help=", ".join(SUITES))]) -> None:
    """Run the named suites; the exit code is 1 when one of them failed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    summary = Table("suite", "passed", "failed", "skipped", "minutes")
    not_passed: list[str] = []
    for name in names:
        results = RESULTS / f"{name}.xml"
        results.unlink(missing_ok=True)
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "--durations", "25", "--junitxml", str(results), *SUITES[name]]
        code = subprocess.run(command, check=False).returncode
        minutes = f"{(time.monotonic() - started) / 60:.1f}"
        if not results.exists():
            summary.add_row(name, "-", f"exit code {code}", "-", minutes)
            not_passed.append(f"{name}: pytest ended with exit code {code} and without results")
            continue
        counts = ElementTree.parse(results).getroot().find("testsuite").attrib  # type: ignore[union-attr]
        failed = int(counts["failures"]) + int(counts["errors"])
        passed = int(counts["tests"]) - failed - int(counts["skipped"])
        summary.add_row(name, str(passed), str(failed), counts["skipped"], minutes)
        not_passed += _failed_tests(name, results)
        if code and not failed:
            not_passed.append(f"{name}: pytest ended with exit code {code}")
    console = Console()
    console.print(summary)
    for line in not_passed:
        console.print(f"FAILED {line}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(bool(not_passed))


def _failed_tests(name: str, results: Path) -> list[str]:
    return [
        f"{name}: {case.get('classname')}::{case.get('name')}"
        for case in ElementTree.parse(results).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]


if __name__ == "__main__":
    typer.run(main)

"""A driver: what it prints and logs, how it ends, and what it leaves to its task."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from airflow.sdk.log import mask_secret

from lakehouse_airflow.hooks.driver_log import TAIL_LINES, DriverLog
from lakehouse_airflow.hooks.forked_driver import ForkedDriver, JobFile
from millrace.processes import end_tree

RunJob = Callable[[str], None]


@pytest.fixture
def driver() -> Iterator[ForkedDriver]:
    driver = ForkedDriver.start()
    yield driver
    driver.kill()
    driver.end()


@pytest.fixture
def run(driver: ForkedDriver, tmp_path: Path) -> RunJob:
    def run(code: str) -> None:
        job = tmp_path / "job.py"
        job.write_text(code)
        driver.run(JobFile(str(job), ["--table=bronze.orders"], {"PLACE": "here", "TMPDIR": str(tmp_path)}, tmp_path))

    return run


def test_it_runs_the_file_as_python_would(driver: ForkedDriver, run: RunJob, tmp_path: Path) -> None:
    run(
        "import logging, os, sys, tempfile\n"
        "print(__name__, sys.argv[1:], dict(os.environ), os.getcwd(), tempfile.gettempdir())\n"
        "os.system('echo from a child')\n"
        "logging.basicConfig(format='%(levelname)s %(message)s')\n"
        "logging.getLogger('millrace').error('logged')\n"
        "logging.getLogger('airflow.task').error('logged as well')\n"
        "sys.exit(11)"
    )
    environment = {"PLACE": "here", "TMPDIR": str(tmp_path)}
    assert driver.stdout.read().splitlines() == [
        f"__main__ ['--table=bronze.orders'] {environment} {tmp_path} {tmp_path}",
        "from a child",
        "ERROR logged",
        "ERROR logged as well",
    ]
    assert driver.wait() == 11
    assert driver.poll() == 11


def test_an_error_is_printed_and_ends_it(driver: ForkedDriver, run: RunJob) -> None:
    run("raise ValueError('no day')")
    assert "ValueError: no day" in driver.stdout.read()
    assert driver.wait() == 1


def test_it_names_its_job_and_can_be_stopped(driver: ForkedDriver, run: RunJob, tmp_path: Path) -> None:
    run("import time; print('works', flush=True); time.sleep(600)")
    assert driver.stdout.readline() == "works\n"
    title = " ".join(psutil.Process(driver.pid).cmdline()).rstrip()  # The rest of a longer command line is empty.
    assert title == f"airflow driver -- {tmp_path}/job.py --table=bronze.orders"
    assert driver.poll() is None
    assert end_tree(driver, grace_s=5) == 1
    assert driver.wait() == -signal.SIGTERM


def test_it_holds_no_file_of_its_task(tmp_path: Path) -> None:
    log, task = socket.socketpair()
    driver = ForkedDriver.start()
    task.close()
    # Airflow's supervisor waits for this end of the task's log.
    assert log.recv(1) == b""
    driver.end()
    assert driver.poll() == 0, "without a job it ends"


AT = "2026-07-01 12:00:00,123"
NOISE = [
    "26/07/01 12:00:00 INFO SparkContext: Running Spark version 4.1.3",
    "26/07/01 12:00:00 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform",
    "WARNING: Using incubator modules: jdk.incubator.vector",
    "Traceback (most recent call last):",
    f"{AT} INFO py4j: x",
    "WARN",
    "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties",
    "",
]
MATTERS = {
    "26/07/01 12:00:00 WARN TaskSetManager: Lost task 0.0 in stage 1.0": logging.WARNING,
    "26/07/01 12:00:00 ERROR Executor: Exception in task 0.0": logging.ERROR,
    "2026-07-01 12:00:00,123 INFO millrace.bronze_ingest: committed batch 3": logging.INFO,
    "2026-07-01 12:00:00,123 WARNING millrace: the spec changed": logging.WARNING,
    "2026-07-01 12:00:00,123 ERROR py4j.clientserver: connection lost": logging.ERROR,
}


def test_the_file_has_every_line_and_the_task_log_those_that_matter(tmp_path: Path) -> None:
    log = DriverLog(tmp_path / "run" / "1.log")
    lines = [*NOISE, *MATTERS]
    shown = list(log.record_and_pick(f"{line}\n" for line in lines))
    assert shown == [(level, line) for line, level in MATTERS.items()]
    assert log.path.read_text().splitlines() == lines


def test_secrets_that_airflow_knows_reach_neither_file_nor_task_log(tmp_path: Path) -> None:
    mask_secret("sesame-open-2013")
    log = DriverLog(tmp_path / "1.log")
    shown = list(log.record_and_pick([f"{AT} ERROR millrace: login with sesame-open-2013 refused\n"]))
    assert shown == [(logging.ERROR, f"{AT} ERROR millrace: login with *** refused")]
    assert "sesame" not in log.path.read_text() + log.tail


def test_a_full_disk_or_a_folder_that_cannot_be_made_costs_the_file_its_lines_and_the_job_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").write_text("a file in the place of the folder")
    lines = [f"line {number}" for number in range(100)]
    for place in (Path("/dev/full"), tmp_path / "run" / "1.log"):
        log = DriverLog(place)
        assert list(log.record(f"{line}\n" for line in lines)) == lines
        assert log.tail.splitlines() == lines[-TAIL_LINES:], "the tail is the end of the output"

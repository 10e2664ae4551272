"""A driver that is a fork: what it prints, how it ends, and what it leaves to its task."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from include.processes import end_tree
from lakehouse_airflow.hooks.forked_driver import ForkedDriver, JobFile

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

"""A driver process: what it logs, and that it ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from embedded.clone import CLONE
from millrace.spark_conf import STARTED_BY

DRIVER = """
import os, time
from millrace_spark.runtime.entrypoint import start_process
start_process()
print(os.getpid(), flush=True)
time.sleep(600)
"""
TASK = """
import os, subprocess, sys
from millrace.spark_conf import STARTED_BY
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, STARTED_BY: str(os.getpid())})
child.wait()
"""


def test_a_driver_whose_task_was_killed_ends_soon() -> None:
    task = subprocess.Popen(
        [sys.executable, "-c", TASK, DRIVER], cwd=CLONE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    driver = psutil.Process(int(task.stdout.readline()))
    time.sleep(2.5)  # it has looked twice
    assert driver.is_running(), "it ended though its task lives"
    task.kill()
    task.wait(timeout=30)
    assert psutil.wait_procs([driver], timeout=30)[1] == []


def test_a_driver_whose_task_is_gone_before_it_looks_ends_at_once() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    ended = run_to_its_end(DRIVER, {STARTED_BY: str(gone.pid)})
    assert ended.returncode == -signal.SIGTERM
    assert f"Process {gone.pid}, which started this driver, is gone" in ended.stderr


def run_to_its_end(driver: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, "-c", driver], {**environment(), **variables}
    return subprocess.run(command, cwd=CLONE, env=env, capture_output=True, text=True, timeout=60, check=False)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}


LOGGING_DRIVER = """
import logging
from millrace_spark.runtime.entrypoint import start_process
start_process()
for name in ("__main__", "millrace_spark.protocol.batches", "millrace.control.leases", "millrace", "py4j"):
    logging.getLogger(name).info("from %s", name)
"""


def test_a_driver_logs_what_its_job_and_its_modules_say_but_not_libraries() -> None:
    ended = run_to_its_end(LOGGING_DRIVER, {"PYTHONPATH": str(CLONE)})
    lines = [line.split(" INFO ")[1] for line in ended.stderr.splitlines()]
    names = ("__main__", "millrace_spark.protocol.batches", "millrace.control.leases", "millrace")
    assert lines == [f"{name}: from {name}" for name in names], "the job itself runs as __main__"

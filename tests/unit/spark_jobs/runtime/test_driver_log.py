"""What a driver logs: Millrace from INFO on, everything else from WARNING on."""

from __future__ import annotations

import os
import subprocess
import sys

from include.settings import PROJECT

DRIVER = """
import logging
from spark_jobs.runtime.entrypoint import start_process
start_process()
for name in ("__main__", "spark_jobs.protocol.batches", "include.control.leases", "millrace", "py4j"):
    logging.getLogger(name).info("from %s", name)
"""


def test_a_driver_logs_what_its_job_and_its_modules_say_but_not_libraries() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(" INFO ")[1] for line in ended.stderr.splitlines()]
    names = ("__main__", "spark_jobs.protocol.batches", "include.control.leases", "millrace")
    assert lines == [f"{name}: from {name}" for name in names], "the job itself runs as __main__"

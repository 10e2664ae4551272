"""`make up` on a machine that is slow."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from embedded import up as module
from embedded.address import Address
from embedded.airflow.standalone import PARTS
from embedded.home import Home
from embedded.serve import NAME
from embedded.stack_processes import spawn
from embedded.up import up
from tests.support.waiting import wait_for


def started(home: Home, name: str) -> psutil.Popen:
    script = "import time; print('Airflow starts', flush=True); time.sleep(60)"
    return spawn(home, name, [sys.executable, "-c", script], os.environ, home.path)


def end(parts: list[psutil.Popen]) -> None:
    for part in parts:
        part.kill()
        part.wait()


def test_a_stack_that_runs_already_names_the_part_of_airflow_that_has_died(tmp_path: Path) -> None:
    home, said = Home(tmp_path), io.StringIO()
    home.prepare()
    Address(web=1, worker_logs=2, spark=3, root=tmp_path, landing=tmp_path).save(home)
    home.ready.touch()
    parts = [started(home, name) for name in (NAME, *PARTS) if name != "scheduler"]
    try:
        up(home, Console(file=said, width=500))
    finally:
        end(parts)
    assert said.getvalue().count("has died") == 1
    assert "Airflow's scheduler has died: `make down`, then `make up`. Its log: " in said.getvalue()


def test_a_start_that_is_late_says_what_runs_and_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    monkeypatch.setattr(module, "LATE_S", 0.3)
    home, said = Home(tmp_path), io.StringIO()
    home.prepare()
    parts = [started(home, name) for name in (NAME, *PARTS)]
    address = Address(web=1, worker_logs=2, spark=3, root=tmp_path, landing=tmp_path)

    def become_ready() -> None:
        wait_for(lambda: "Airflow starts" in said.getvalue(), 30)
        address.save(home)
        home.ready.touch()

    ready = threading.Thread(target=become_ready)
    ready.start()
    try:
        assert up(home, Console(file=said, width=500)) == address
    finally:
        ready.join()
        end(parts)
    assert (
        "PostgreSQL does not run yet, Airflow runs, the Spark server does not run yet. Last line of" in said.getvalue()
    )
    assert "It goes on, also without this command" in said.getvalue()

"""`make up` on a machine that is slow."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

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


def test_a_start_that_is_late_says_what_runs_and_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    monkeypatch.setattr(module, "LATE_S", 0.3)
    home, said = Home(tmp_path), io.StringIO()
    home.prepare()
    script = "import time; print('Airflow starts', flush=True); time.sleep(60)"
    parts = [spawn(home, name, [sys.executable, "-c", script], os.environ, tmp_path) for name in (NAME, *PARTS)]
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
        for part in parts:
            part.kill()
            part.wait()
    assert (
        "PostgreSQL does not run yet, Airflow runs, the Spark server does not run yet. Last line of" in said.getvalue()
    )
    assert "It goes on, also without this command" in said.getvalue()

"""`make up` and `make down`, in a home of their own beside any other stack."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from embedded.down import down
from embedded.serve import NAME
from embedded.spark.server import NAME as SPARK
from embedded.stack import remaining_processes
from embedded.stack_processes import recorded
from embedded.up import print_address, up
from tests.support.airflow.homes import new_home

pytestmark = pytest.mark.slow


def test_up_twice_is_harmless_and_down_leaves_no_process_even_of_a_killed_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path / "lakehouse"))
    # With a connection of the environment it starts no Spark server of its own.
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    with new_home() as home:
        console = Console(file=io.StringIO(), width=200)
        try:
            address = up(home, console)
            keeper = recorded(home, NAME)
            assert httpx.get(f"{address.url}/api/v2/version").status_code == 200

            assert up(home, console) == address
            assert recorded(home, NAME) == keeper
            print_address(home, address, console)
            told = console.file.getvalue()  # type: ignore[attr-defined]
            assert address.url in told
            assert home.passwords.name in told

            keeper.kill()
            assert len(remaining_processes(home)) > 5
            assert recorded(home, SPARK) is None
        finally:
            down(home, console)
        assert remaining_processes(home) == []
        assert "no process of it is left" in console.file.getvalue()  # type: ignore[attr-defined]

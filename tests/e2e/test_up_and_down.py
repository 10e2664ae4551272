"""`make up` and `make down`, in a home of their own beside any other stack."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from embedded.down import down
from embedded.home import Home
from embedded.serve import NAME
from embedded.stack import remaining_processes
from embedded.stack_processes import recorded
from embedded.up import print_address, up

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_up_twice_is_harmless_and_down_leaves_no_process_even_of_a_killed_stack(
    tmp_path: Path, new_home: Callable[[], Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path / "lakehouse"))
    home = new_home()
    console = Console(file=io.StringIO(), width=200)
    try:
        address = up(home, console)
        keeper = recorded(home, NAME)
        assert keeper is not None
        assert httpx.get(f"{address.url}/api/v2/version").status_code == 200

        assert up(home, console) == address
        assert recorded(home, NAME) == keeper
        print_address(home, address, console)
        told = console.file.getvalue()  # type: ignore[attr-defined]
        assert address.url in told
        assert home.passwords.name in told

        keeper.kill()
        assert len(remaining_processes(home)) > 5
    finally:
        down(home, console)
    assert remaining_processes(home) == []
    assert "no process of it is left" in console.file.getvalue()  # type: ignore[attr-defined]

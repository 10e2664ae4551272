"""`make up`: start the local stack, unless it runs, and print how to open it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import PurePath

from rich.console import Console
from rich.table import Table

from embedded.address import Address
from embedded.airflow.standalone import USER, missing_parts
from embedded.clone import CLONE
from embedded.errors import StackError
from embedded.home import DEFAULT_HOME, Home
from embedded.serve import NAME
from embedded.servers.postgres import Postgres, folders_opened_to_others
from embedded.spark.server import NAME as SPARK
from embedded.stack_processes import recorded, spawn

LATE_S = 60
"""After so many seconds, and again after as many, it says what runs so far."""


class NotUpError(StackError):
    """Raised when the stack did not come up; the message has the last lines of its log."""


def up(home: Home, console: Console) -> Address:
    """Start the stack of `home` unless it runs, and wait until it is ready.

    A slow machine may need minutes: then it says what runs so far, and waits on.

    Raises:
        NotUpError: the stack did not come up.
    """
    home.prepare()
    if recorded(home, NAME) is None:
        home.ready.unlink(missing_ok=True)
        for folder in folders_opened_to_others():
            note = f"PostgreSQL does not run as root: {folder} becomes readable for its own user."
            console.print(f"[yellow]{note}[/yellow]")
        spawn(home, NAME, [sys.executable, "-m", "embedded.serve", str(home.path)], os.environ, cwd=CLONE)
    else:
        console.print("The local stack runs already.")
        for part in missing_parts(home) if home.ready.exists() else ():
            log = _short(home.logs / f"{part}.log")
            console.print(f"[yellow]Airflow's {part} has died: `make down`, then `make up`. Its log: {log}[/yellow]")
    began, told_s = time.monotonic(), LATE_S
    with console.status("Waiting for PostgreSQL, Airflow and the Spark server (half a minute)"):
        while not home.ready.exists():
            if recorded(home, NAME) is None:
                lines = (home.logs / f"{NAME}.log").read_text().strip().split("\n")
                msg = "\n".join(["The local stack did not come up:", *lines[-3:], f"All logs: {home.logs}"])
                raise NotUpError(msg)
            if (waited_s := time.monotonic() - began) > told_s:
                told_s += LATE_S
                console.print(_progress(home, waited_s))
            time.sleep(0.2)
    return Address.model_validate_json(home.address.read_text())


def _progress(home: Home, waited_s: float) -> str:
    parts = {"PostgreSQL": Postgres(home).process() is not None, "Airflow": not missing_parts(home)}
    if "AIRFLOW_CONN_SPARK_DEFAULT" not in os.environ:
        parts["the Spark server"] = recorded(home, SPARK) is not None
    runs = [f"{name} {'runs' if runs else 'does not run yet'}" for name, runs in parts.items()]
    last = (home.logs / f"{NAME}.log").read_text().strip().rpartition("\n")[2]
    return (
        f"Not ready after {waited_s:.0f} s: {', '.join(runs)}.{f' Last line of its log: {last}' if last else ''}\n"
        "It goes on, also without this command, which may be repeated; `make down` stops it."
    )


def print_address(home: Home, address: Address, console: Console) -> None:
    """Print the addresses of the stack, and how to log in."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("Airflow", f"[bold]{address.url}[/bold]")
    table.add_row("user", USER)
    table.add_row("password", f"in {_short(home.passwords)} (only you can read it)")
    table.add_row("tables", _short(address.root))
    table.add_row("landing files", _short(address.landing))
    table.add_row("logs", f"{_short(home.logs)}, {_short(home.airflow / 'logs')}")
    table.add_row("stop it", "make down")
    console.print(table)


def main() -> None:
    """Start the stack of the project."""
    console = Console(highlight=False)
    home = Home(DEFAULT_HOME)
    try:
        print_address(home, up(home, console), console)
    except StackError as error:
        console.print(f"[red]{error}[/red]")
        sys.exit(1)


def _short(place: str | PurePath) -> str:
    return str(place).removeprefix(f"{CLONE}/")


if __name__ == "__main__":
    main()

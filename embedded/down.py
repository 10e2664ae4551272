"""`make down`: stop the local stack, and check that no process of it is left."""

from __future__ import annotations

import sys

import psutil
from rich.console import Console

from embedded.errors import StackError
from embedded.home import DEFAULT_HOME, Home
from embedded.serve import NAME
from embedded.stack import remaining_processes, stop_parts
from embedded.stack_processes import stop

PATIENCE_S = 120


class NotDownError(StackError):
    """Raised when processes of the stack could not be ended; the message names them."""


def down(home: Home, console: Console) -> None:
    """Stop the stack of `home`, and end the processes that a killed stack left.

    Raises:
        NotDownError: a process is left.
    """
    if not home.path.exists() or not remaining_processes(home):
        console.print("No local stack was running.")
        return
    with console.status("Stopping Airflow, the Spark server and PostgreSQL"):
        stop(home, NAME, PATIENCE_S)
        for process in remaining_processes(home):
            console.print(f"[yellow]ending {_description(process)}, which was left behind[/yellow]")
        stop_parts(home)
    if left := remaining_processes(home):
        msg = f"could not end {', '.join(_description(process) for process in left)}; end them yourself: kill -9 <pid>"
        raise NotDownError(msg)
    console.print("The local stack is stopped; no process of it is left.")


def main() -> None:
    """Stop the stack of the project."""
    console = Console(highlight=False)
    try:
        down(Home(DEFAULT_HOME), console)
    except StackError as error:
        console.print(f"[red]{error}[/red]")
        sys.exit(1)


def _description(process: psutil.Process) -> str:
    try:
        return f"process {process.pid} ({' '.join(process.cmdline())[:60]})"
    except psutil.NoSuchProcess:
        return f"process {process.pid}"


if __name__ == "__main__":
    main()

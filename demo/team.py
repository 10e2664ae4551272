"""`make compose-demo`: the demo's days through the services of docker-compose.yaml, with the tables in their bucket.

The services have their own project, and with it their own volumes, which are deleted at the end: a Millrace that a team
runs on this machine is not touched. The tables are compared on copies, because DuckDB's extension for S3 would have to
be downloaded.
"""

from __future__ import annotations

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from containers.compose import LANDING, TABLES, Compose
from demo.outcome import outcome_table
from demo.run import FIRST, LAST, backfill_days, check
from demo.source_system import lay_out
from embedded.errors import StackError
from embedded.home import free_port
from embedded.interrupts import interrupt_once
from millrace.settings import Settings

PROJECT_NAME = "millrace-demo"


def main() -> None:
    """Run the demo; the exit code is 0 only when every number is right."""
    interrupt_once()
    console = Console(highlight=False, soft_wrap=True)
    try:
        sys.exit(0 if demo(Compose(PROJECT_NAME, free_port(8080)), console) else 1)
    except StackError as error:
        console.print(error, style="red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("Stopped.")
        sys.exit(130)


def demo(services: Compose, console: Console) -> bool:
    """Start the services with empty volumes, backfill the days, check the tables; return whether all are right."""
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            right = _load_and_check(services, Path(folder), console)
    finally:
        with console.status("Removing the services and their volumes"):
            services.remove()
    verdict = "[green]Every number is right" if right else "[red]Not everything is right"
    console.print(f"{verdict}[/], {time.monotonic() - began:.0f} s.")
    return right


def _load_and_check(services: Compose, folder: Path, console: Console) -> bool:
    copies = Settings(root=folder / "tables", landing=str(folder / "landing"))
    lay_out(folder / "landing", FIRST, LAST + timedelta(days=1))
    with console.status("Starting the services of docker-compose.yaml (a minute or two)"):
        services.remove()
        services.start()
    services.copy_in(folder / "landing", LANDING)
    console.print(f"Delivered {FIRST} to {LAST} to {LANDING}. Airflow runs at {services.url}.")
    with services.api() as api:
        days = backfill_days(api, console)
    services.copy_out(TABLES, folder / "tables")
    results = check(copies, days)
    console.print(outcome_table(results), "")
    return not any(result.wrong for result in results) and all(day.run.state == "success" for day in days)


if __name__ == "__main__":
    main()

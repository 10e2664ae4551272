"""``python -m benchmarks.web.viewers``: fifty people on all pages of a real Airflow for two minutes.

The days of the demo are loaded first. Airflow's own API is asked with nobody on the pages, and then with all of them:
its times, and the age of the scheduler's last heartbeat, may be twice as high at most (95th percentile).
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from benchmarks.machine import load
from demo.run import DOMAIN, FIRST, LAST, prepare, run_backfill
from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.airflow.standalone import USER, passwords
from embedded.clone import CLONE
from embedded.home import Home
from embedded.stack import Stack
from millrace.catalog import load_catalog
from millrace.settings import Settings

LOCUST = "locust==2.45.0"
FOLDER = CLONE / "data" / "benchmarks" / "viewers"
VIEWERS, SECONDS, QUIET_SECONDS = 50, 120, 60
MOST = 2.0
"""How many times the quiet figure a figure beside the viewers may be."""

TABS = ("", "/versions", "/quality", "/storage", "/lineage", "/spec")
WATCHED = ("Airflow's API", "scheduler's heartbeat")


def main() -> None:
    """Load the days, measure, and print the figures; the exit code is 1 if one is too high."""
    console = Console(highlight=False)
    place = {"root": FOLDER / "lakehouse", "landing": str(FOLDER / "landing"), "runs": FOLDER / "runs"}
    settings = Settings().model_copy(update=place)
    home = Home(FOLDER / "home")
    loading = Stack(home, settings, Address.free(home, settings))
    loading.claim()
    prepare(settings, console)
    run_backfill(loading, console)
    with Stack(home, settings, Address.free(home, settings)) as stack, stack.api() as api:
        pages = addresses(api, settings)
        password = passwords(stack.home, stack.users)[USER]
        environment = {"VIEWER": USER, "VIEWER_PASSWORD": password, "VIEWED_PAGES": "\n".join(pages)}
        console.print(f"{len(pages)} pages; load before: {load():.1f}")
        quiet = ask(stack.address.url, environment, QUIET_SECONDS, 1, "Monitor")
        busy = ask(stack.address.url, environment, SECONDS, 1 + VIEWERS, "Monitor", "Viewer")
    console.print(figures(quiet, busy))
    too_high = [name for name in WATCHED if float(busy[name]["95%"]) > MOST * float(quiet[name]["95%"])]
    failed = sum(int(row["Failure Count"]) for row in busy.values())
    if too_high or failed:
        console.print(f"Too high: {', '.join(too_high) or 'nothing'}. Failed requests: {failed}.")
        sys.exit(1)


def addresses(api: AirflowApi, settings: Settings) -> list[str]:
    """Return the addresses of all pages: of each table, of the first run, of its Data Docs, and of all tables."""
    tables = list(load_catalog(settings.tables).of_domain(DOMAIN))
    run = quote(next(iter(api.runs(DOMAIN, run_type="backfill"))).dag_run_id, safe="")
    return [
        *("/lakehouse/tables", "/lakehouse/lineage", f"/lakehouse/lineage?domain={DOMAIN}"),
        *(f"/lakehouse/tables/{spec.table}{tab}" for spec in tables for tab in TABS),
        *(f"/lakehouse/tables/{spec.table}/files" for spec in tables if spec.layer == "bronze"),
        *(f"/lakehouse/tables/{spec.table}/quarantine" for spec in tables if spec.layer != "gold"),
        *(f"/lakehouse/lineage?table={spec.table}" for spec in tables),
        *(f"/lakehouse/data-docs/{DOMAIN}/{run}/{spec.table}" for spec in tables),
        *(f"/lakehouse/runs/{DOMAIN}/{run}", f"/lakehouse/backfill-plan/{DOMAIN}?first={FIRST}&last={LAST}"),
        *("/lakehouse/trigger/gate_override", f"/lakehouse/backfill/{DOMAIN}", "/lakehouse/docs/glossary.md"),
    ]


def ask(url: str, environment: dict[str, str], seconds: int, users: int, *who: str) -> dict[str, dict[str, str]]:
    """Let locust send requests; return what it says of each kind of request, by its name."""
    with TemporaryDirectory() as folder:
        locust = [str(CLONE / ".venv" / "bin" / "uv"), "tool", "run", "--from", LOCUST, "locust", *who]
        how = ["--headless", "--only-summary", "--users", users, "--spawn-rate", 5, "--run-time", f"{seconds}s"]
        files = ["--locustfile", Path(__file__).with_name("clicks.py"), "--csv", Path(folder) / "figures"]
        command = [*locust, *how, *files, "--host", url]
        done = subprocess.run([*map(str, command)], env={**os.environ, **environment}, capture_output=True, text=True)
        if not (Path(folder) / "figures_stats.csv").exists():
            sys.exit(done.stderr)
        failures = (Path(folder) / "figures_failures.csv").read_text()
        sys.stderr.write(failures.partition("\n")[2])
        with (Path(folder) / "figures_stats.csv").open() as lines:
            return {row["Name"]: row for row in csv.DictReader(lines) if row["Name"] != "Aggregated"}


def figures(quiet: dict[str, dict[str, str]], busy: dict[str, dict[str, str]]) -> Table:
    """Return the figures in milliseconds, with nobody on the pages and with all viewers."""
    table = Table("", "requests", "p50", "p95", "longest", "p95 with no viewers", box=None)
    for name, row in busy.items():
        before = quiet[name]["95%"] if name in quiet else ""
        longest = f"{float(row['Max Response Time']):.0f}"
        table.add_row(name, row["Request Count"], row["50%"], row["95%"], longest, before)
    return table


if __name__ == "__main__":
    main()

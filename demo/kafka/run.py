"""`make demo-kafka`: real flights through a real Kafka broker into bronze and silver, checked against their source."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from demo.kafka.feed import CLUSTER, create_topic, send_day, write_specs
from demo.lakehouse import NotTheDemosError, start_empty
from demo.oracle import expected_tables
from demo.outcome import outcome_table, outcomes
from demo.source_system import lay_out
from embedded.clone import CLONE, DEMO
from embedded.errors import StackError
from embedded.servers.kafka_broker import KafkaBroker, running_broker
from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.control.planning.planner import Planner
from millrace.errors import NotReadyError
from millrace.settings import Settings

FOLDER = CLONE / "data" / "kafka-demo"
DAYS = (date(2013, 1, 1), date(2013, 1, 2))
TABLES = ("bronze.flight_events", "silver.flights")
PATIENCE_S = 300


def main() -> None:
    """Run the demo; the exit code is 0 only when every number is right."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        sys.exit(0 if demo(FOLDER, console) else 1)
    except (StackError, NotTheDemosError) as error:
        console.print(f"[red]{error}[/red]")
        sys.exit(1)


def demo(folder: Path, console: Console) -> bool:
    """Send two days of flight events while `lakehouse run --follow` reads them; return whether all rows are right."""
    began = time.monotonic()
    start_empty(folder)
    landing = folder / "landing"
    lay_out(landing, DAYS[0], DAYS[-1] + timedelta(days=1))
    write_specs(DEMO / "tables", folder / "tables")
    with running_broker(folder / "home", Settings().jars) as broker:
        settings = _settings(folder, broker)
        create_topic(broker.address)
        console.print(f"A Kafka broker runs at {broker.address}.")
        with following(settings):
            for day in DAYS:
                console.print(f"{day}: {send_day(broker.address, landing, day):,} messages sent.")
                _wait_until_read(settings)
    oracle = expected_tables(landing, DAYS[0], DAYS[-1] + timedelta(days=1))
    results = outcomes(settings.root, oracle, (), TABLES)
    console.print(outcome_table(results))
    right = not any(result.wrong for result in results)
    verdict = "[green]Every number is right" if right else "[red]Not everything is right"
    console.print(f"{verdict}[/], {time.monotonic() - began:.0f} s. The specs are in {folder / 'tables'}.")
    return right


@contextmanager
def following(settings: Settings) -> Iterator[None]:
    """Run `lakehouse run --follow` as a process within the block, and stop it at the end.

    Raises:
        StackError: its exit code is not 0.
    """
    command = [str(Path(sys.executable).parent / "lakehouse"), "run", "--follow"]
    process = subprocess.Popen(command, env={**os.environ, **settings.environment()}, cwd=CLONE)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_S)
    if code != 0:
        raise StackError(f"`lakehouse run --follow` ended with exit code {code}; its output above says why.")


def _settings(folder: Path, broker: KafkaBroker) -> Settings:
    kafka = {CLUSTER: {"bootstrap.servers": broker.address}}
    return Settings(root=folder / "lakehouse", landing=str(folder / "landing"), tables=folder / "tables", kafka=kafka)


def _wait_until_read(settings: Settings) -> None:
    """Wait until the planner finds nothing new for any table.

    Raises:
        StackError: this takes longer than PATIENCE_S.
    """
    retrying = Retrying(stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(1), retry=retry_if_result(bool))
    try:
        retrying(_pending_work, settings)
    except RetryError as error:
        pending = error.last_attempt.result()
        raise StackError(f"The messages were not read within {PATIENCE_S} s; pending: {pending}") from error


def _pending_work(settings: Settings) -> str:
    """Return the planner's message for the first table that is not done; empty if all are done."""
    catalog = load_catalog(settings.tables)
    for spec in catalog.specs.values():
        try:
            advice = Planner(catalog, settings).advise(spec, _ANY_DAY)
        except NotReadyError as error:  # at first silver waits for bronze's first certified version
            return str(error)
        if not advice.nothing_new:
            return f"{spec.table}: {advice.message}"
    return ""


_ANY_DAY = Interval.model_validate({"start": "2013-01-01T00:00:00Z", "end": "2013-01-02T00:00:00Z"})
"""The planner needs an interval; topics and the tables that read them have none."""


if __name__ == "__main__":
    main()

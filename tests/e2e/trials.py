"""Small domains beside the flights, each made for one kind of trouble: their specs, DAG files, landing files and rows.

- `judged`: silver may have three rows at most, so that a fourth one makes the gate refuse it, until a person lets the
  version pass; gold stands below. Bronze puts negative readings into quarantine.
- `revived`: bronze and silver, to load while the Spark server is dead.
- `late`: a bronze table whose files come after its run has begun, and after its deadline. Their new fields become
  columns when somebody has approved them.
- `submitted`: a bronze table that is written through spark-submit instead of by the warm server.
- `outgrown`: silver is built anew, since values outgrow their type.
- `thinned`: full snapshots, one of which lacks most keys.
- `fed`: bronze reads a Kafka topic, silver stands above; it runs every quarter of a minute.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from millrace.cli.facts import table_facts
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.documents.specs import Document, write_specs

READINGS = {"sensor": {"type": "string"}, "value": {"type": "int"}}
AT_MOST_THREE = "expect_table_row_count_to_be_between"
NO_NEGATIVE = "no reading is negative"
SUBMIT_CONNECTION = "spark_submit_here"

LONG_NAME = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrik" * 3
"""A name without a place where a line could break, for the pages."""

CLUSTER, TOPIC = "main", "readings"

BY_HAND, DAILY = "schedule=None", 'schedule="0 0 * * *"'
EVERY_15_S = 'schedule="* * * * * */15"'
"""Cron's own shortest step, a minute, would make the test wait; the sixth field counts seconds."""

DOMAINS = {
    "judged": BY_HAND,
    "revived": DAILY,
    "late": f"{DAILY}, deadline=DeadlineAlert("
    "reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(seconds=1), callback=SyncCallback(missed)), "
    'on_success_callback=Note("run"), default_args={"on_success_callback": Note("task")}',
    "submitted": f'{BY_HAND}, conn_id="{SUBMIT_CONNECTION}"',
    "outgrown": BY_HAND,
    "thinned": BY_HAND,
    "fed": EVERY_15_S,
}
"""Domain -> the arguments of its DAG beside the common."""

_NOTES = "late_notes"
_CALLBACKS = {
    "late": f'''
from pathlib import Path
from airflow.sdk import BaseNotifier, DeadlineAlert, DeadlineReference, SyncCallback
from millrace.settings import Settings

def note(name):
    folder = Path(Settings().landing) / "{_NOTES}"
    folder.mkdir(exist_ok=True)
    (folder / name).touch()

def missed():
    note("deadline")

class Note(BaseNotifier):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def notify(self, context):
        note(self.name)
'''
}
"""Domain -> what stands before the DAG in its file."""

_CHANGES = {"submitted": 'dag.get_task("bronze.submitted_readings_gate").conn_id = "spark_default"'}
"""Domain -> what stands after the DAG in its file. One task by spark-submit is enough: each starts a JVM."""

PARTITIONED = "send_orders"
"""An example of the documentation: a DAG that runs for each interval of a table, here of `gold.judged_totals`."""

_DAG_FILE = '''"""A trial of the end-to-end tests: an Airflow DAG of the domain {domain}."""

from datetime import UTC, datetime, timedelta

from lakehouse_airflow.factory import build_domain_dag
{callbacks}
dag = build_domain_dag("{domain}", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="tests", {arguments})
{changes}
'''


def add_specs(tables: Path) -> None:
    """Add the specs of the trial domains to a folder of specs."""
    three = {AT_MOST_THREE: {"max_value": 3}, "action": "fail", "reason": f"there are three sensors: {LONG_NAME}"}
    of_odd_people = {"owner": LONG_NAME, "description": LONG_NAME}
    silver = {**_silver("judged"), **of_odd_people, "expectations": [three]}
    between = {"column": "value", "min_value": 0}
    not_negative = {"expect_column_values_to_be_between": between, "action": "quarantine", "reason": NO_NEGATIVE}
    bronze = {**_bronze("judged"), **of_odd_people, "expectations": [not_negative]}
    write_specs(tables, bronze, silver, _gold("judged"), domain="judged")
    write_specs(tables, _bronze("revived"), _silver("revived"), domain="revived")
    late = {**_bronze("late"), "on_drift": "evolve", "evolve": "ask"}
    late = {**late, "source": {**late["source"], "wait": {"timeout": "20 minutes", "poke_interval": "1 seconds"}}}
    write_specs(tables, late, domain="late")
    write_specs(tables, _bronze("submitted"), domain="submitted")
    write_specs(tables, _bronze("outgrown"), readings_of("int"), domain="outgrown")
    write_specs(tables, _bronze("thinned"), {**_silver("thinned"), "snapshot": "full"}, domain="thinned")
    topic = {"kafka": CLUSTER, "topics": [TOPIC], "format": "json"}
    by_offset = {"columns": {**READINGS, "sent": {"type": "bigint", "from": "_offset"}}, "sequence_by": ["sent"]}
    write_specs(tables, {**_bronze("fed"), "source": topic}, {**_silver("fed"), **by_offset}, domain="fed")


def readings_of(value_type: str) -> Document:
    """The spec of the silver table of `outgrown`, whose values are of a type."""
    return {**_silver("outgrown"), "columns": {**READINGS, "value": {"type": value_type}}}


def add_dags(dags: Path) -> None:
    """Add the DAG files of the trial domains to a folder of DAG files."""
    for domain, arguments in DOMAINS.items():
        around = {"callbacks": _CALLBACKS.get(domain, ""), "changes": _CHANGES.get(domain, "")}
        (dags / f"{domain}.py").write_text(_DAG_FILE.format(domain=domain, arguments=arguments, **around))
    example = Path(f"docs/examples/{PARTITIONED}.py").read_text()
    (dags / f"{PARTITIONED}.py").write_text(example.replace("bronze.orders", "gold.judged_totals"))


def notes(landing: str) -> set[str]:
    """The names of the callbacks of `late` that have been called."""
    return {note.name for note in (Path(landing) / _NOTES).glob("*")}


def deliver(
    landing: str, domain: str, day: date, readings: Iterable[tuple[Any, ...]], fields: str = "sensor,value"
) -> None:
    """Write the landing file of one day of a trial domain."""
    folder = Path(landing) / domain / f"date={day}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [fields, *(",".join(map(str, reading)) for reading in readings)]
    (folder / "readings.csv").write_text("\n".join(lines) + "\n")


def certified_rows(settings: Settings, table: str, value: str = "value") -> list[tuple[str, int]]:
    """The sensors and their values in the version that readers use, in the order of the sensors."""
    version = table_facts(table, settings.root).certified_version
    rows = DeltaTable(str(LakehousePaths(settings.root).table(table)), version=version).to_pyarrow_table()
    return [(row["sensor"], row[value]) for row in rows.sort_by("sensor").to_pylist()]


def _bronze(domain: str) -> Document:
    source = {"landing": domain, "files": "*.csv", "format": "csv"}
    return {"table": f"bronze.{domain}_readings", "source": source, "columns": READINGS}


def _silver(domain: str) -> Document:
    table, source = (f"{layer}.{domain}_readings" for layer in ("silver", "bronze"))
    return {"table": table, "source": source, "keys": ["sensor"], "columns": READINGS}


def _gold(domain: str) -> Document:
    return {
        "table": f"gold.{domain}_totals",
        "sources": {"r": {"table": f"silver.{domain}_readings"}},
        "refresh_by": "sensor",
        "refresh_from": {"r": "sensor"},
        "group_by": {"sensor": "r.sensor"},
        "measures": {"readings": "count(*)", "total": "sum(r.value)"},
    }

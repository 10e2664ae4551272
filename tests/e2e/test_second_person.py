"""A table that is built anew, and old files that are deleted: one person asks, and another one approves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from deltalake import DeltaTable

from embedded.airflow.api import AirflowApi, Run, Task
from embedded.airflow.standalone import USER
from millrace.cli.facts import table_facts
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.rebuilds import REBUILDS
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, LoadDay
from tests.e2e.people import APPROVER, answer_all
from tests.e2e.waiting import ended, wait_for
from tests.support.documents.specs import write_specs

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.outgrown_readings", "silver.outgrown_readings"
OWN_ANSWER = f"{USER} asked for this, and may not approve it."


@pytest.fixture(scope="module")
def day(load_day: LoadDay) -> Run:
    """The first day of the domain `outgrown`."""
    return load_day("outgrown", FIRST, [("a", 1), ("b", 2)])


def approve_in_turn(api: AirflowApi, approver: AirflowApi, run: Run, subject: str) -> str:
    """Who has asked approves, in vain; then another person does. Returns what both were shown."""
    answer_all(api, run, {subject: "Approve"})
    assert ended(api, run).state == "failed"
    refused = api.task(run, "approve")
    assert (refused.state, refused.try_number) == ("failed", 1), "it is not tried again"
    assert OWN_ANSWER in "\n".join(api.log(refused))

    api.clear(run, "approve")
    (question,) = answer_all(approver, run, {subject: "Approve"}).values()
    assert ended(api, run).state == "success"
    return str(question["body"])


def filled_in_form(api: AirflowApi, stopped: Task, link: str) -> dict[str, str]:
    """The values of the form to which a link of a stopped task leads."""
    form = urlsplit(api.get(f"{stopped.path}/links")["extra_links"][link])
    return {name: values[0] for name, values in parse_qs(form.query).items()}


@pytest.mark.timeout(900)
def test_a_table_is_rebuilt_when_another_person_allows_it(
    api: AirflowApi, approver: AirflowApi, day: Run, lakehouse: Settings
) -> None:
    assert day.state == "success"
    before = table_facts(SILVER, lakehouse.root)
    write_specs(lakehouse.tables, trials.readings_of("bigint"), domain=day.dag_id)

    api.clear(day, SILVER)
    assert ended(api, day).state == "failed"
    filled_in = filled_in_form(api, api.task(day, SILVER), "Table rebuild")
    run = api.trigger("table_rebuild", {**filled_in, "why": "values outgrow an int"})
    shown = approve_in_turn(api, approver, run, f"Rebuild {SILVER}?")
    assert f"would rebuild {SILVER} (2 rows now) by its spec " in shown
    assert f"Why, says {USER}: `values outgrow an int`" in shown

    after = table_facts(SILVER, lakehouse.root)
    assert after.version == after.certified_version == before.version + 1
    new = DeltaTable(str(LakehousePaths(lakehouse.root).table(SILVER)))
    assert {field.name: field.type.type for field in new.schema().fields}["value"] == "long"
    assert trials.certified_rows(lakehouse, SILVER) == [("a", 1), ("b", 2)]
    told = api.get("/api/v2/assets/events", limit=1000, source_dag_id="table_rebuild")["asset_events"]
    assert [(event["name"], event["extra"]["version"]) for event in told] == [(SILVER, after.version)]
    events = OpsTable(LakehousePaths(lakehouse.root).ops("rebuilds"), REBUILDS).events(SILVER)
    done = [(row["event"], row["said_by"], row["why"]) for row in events]
    said_by = f"{USER}, approved by {APPROVER}"
    assert done == [(event, said_by, "values outgrow an int") for event in ("started", "done")]

    # Nobody clears the task that did not fit: the run of the rebuild does.
    assert ended(api, day).state == "success", "the next runs go on with the new table"
    assert trials.certified_rows(lakehouse, SILVER) == [("a", 1), ("b", 2)]


@pytest.mark.timeout(600)
def test_old_files_go_when_another_person_allows_it_and_a_quiet_table_gets_its_checkpoint_by_itself(
    api: AirflowApi, approver: AirflowApi, day: Run, lakehouse: Settings
) -> None:
    assert day.state == "success"
    path = Path(str(lakehouse.paths.table(BRONZE)))
    log, long_ago = path / "_delta_log", time.time() - 31 * 24 * 3600
    (old := path / "old.parquet").touch()
    os.utime(old, (long_ago, long_ago))

    run = api.trigger("table_vacuum", {"table": BRONZE, "why": "the disk is full"})
    (question,) = answer_all(approver, run, {f"Delete old files of {BRONZE}?": "Approve"}).values()
    assert ended(api, run).state == "success"
    assert "1 file" in question["body"]
    assert f"Why, says {USER}: `the disk is full`" in question["body"]
    assert not old.exists()

    for file in log.iterdir():
        os.utime(file, (long_ago, long_ago))
    api.wait_for_dag("table_maintenance")
    api.set_paused("table_maintenance", False)  # Airflow then starts the run of last night by itself.
    nightly = ended(api, wait_for(lambda: api.runs("table_maintenance"))[0])
    api.set_paused("table_maintenance", True)
    mapped = api.get(f"{nightly.path}/taskInstances/maintain/listMapped")["task_instances"]
    done = {task["rendered_map_index"]: task["state"] for task in mapped}
    assert done.get(f"{BRONZE}: checkpoint") == "success", done
    assert list(log.glob("*.checkpoint.parquet"))

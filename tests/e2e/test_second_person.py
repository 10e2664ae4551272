"""A table that is built anew in a real Airflow: one person asks, and another one approves."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from deltalake import DeltaTable

from embedded.airflow.api import AirflowApi, Run, Task
from embedded.airflow.standalone import USER
from include.cli.facts import table_facts
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.rebuilds import REBUILDS
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, RunDay
from tests.e2e.people import APPROVER, answer_all
from tests.support.documents.specs import write_specs

pytestmark = pytest.mark.slow

SILVER, GOLD = "silver.outgrown_readings", "gold.outgrown_totals"
OWN_ANSWER = f"{USER} asked for this, and may not approve it."
Row = dict[str, Any]


def approve_in_turn(api: AirflowApi, approver: AirflowApi, run: Run, subject: str) -> str:
    """Who has asked approves, in vain; then another person does. Returns what both were shown."""
    answer_all(api, run, {subject: "Approve"})
    assert api.wait_for_run(run, PATIENCE_S).state == "failed"
    refused = api.task(run, "approve")
    assert (refused.state, refused.try_number) == ("failed", 1), "it is not tried again"
    assert OWN_ANSWER in "\n".join(api.log(refused))

    api.clear(run, "approve")
    (question,) = answer_all(approver, run, {subject: "Approve"}).values()
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    return str(question["body"])


def certified(table: str, lakehouse: Settings) -> list[Row]:
    """The rows that readers see, in their order, without what Millrace adds."""
    version = table_facts(table, lakehouse.root).certified_version
    rows = DeltaTable(str(LakehousePaths(lakehouse.root).table(table)), version=version).to_pyarrow_table()
    return [
        {name: value for name, value in row.items() if not name.startswith("_")}
        for row in rows.sort_by("sensor").to_pylist()
    ]


def filled_in_form(api: AirflowApi, stopped: Task, link: str) -> dict[str, str]:
    """The values of the form to which a link of a stopped task leads."""
    form = urlsplit(api.get(f"{stopped.path}/links")["extra_links"][link])
    return {name: values[0] for name, values in parse_qs(form.query).items()}


@pytest.mark.timeout(900)
def test_a_table_is_rebuilt_when_another_person_allows_it(
    api: AirflowApi, approver: AirflowApi, start_day: RunDay, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "outgrown", FIRST, [("a", 1), ("b", 2)])
    day = api.wait_for_run(start_day("outgrown", FIRST), PATIENCE_S)
    assert day.state == "success"
    before = {table: table_facts(table, lakehouse.root) for table in (SILVER, GOLD)}
    totals = certified(GOLD, lakehouse)
    write_specs(lakehouse.tables, trials.readings_of("bigint"), domain=day.dag_id)

    api.clear(day, SILVER)
    assert api.wait_for_run(day, PATIENCE_S).state == "failed"
    filled_in = filled_in_form(api, api.task(day, SILVER), "Table rebuild")
    asked = {**filled_in, "downstream": True, "why": "values outgrow an int"}
    run = api.trigger("table_rebuild", asked)
    shown = approve_in_turn(api, approver, run, f"Rebuild {SILVER}?")
    assert f"would rebuild {SILVER} (2 rows now), {GOLD} (2 rows now). Nothing was written" in shown
    assert f"Why, says {USER}: **values outgrow an int**" in shown

    after = {table: table_facts(table, lakehouse.root) for table in (SILVER, GOLD)}
    for table, facts in after.items():
        assert facts.version == facts.certified_version == before[table].version + 1
    new = DeltaTable(str(LakehousePaths(lakehouse.root).table(SILVER)))
    assert {field.name: field.type.type for field in new.schema().fields}["value"] == "long"
    assert certified(SILVER, lakehouse) == [{"sensor": "a", "value": 1}, {"sensor": "b", "value": 2}]
    assert certified(GOLD, lakehouse) == totals
    told = api.get("/api/v2/assets/events", limit=1000, source_dag_id="table_rebuild")["asset_events"]
    assert {event["name"]: event["extra"]["version"] for event in told} == {t: f.version for t, f in after.items()}
    events = OpsTable(LakehousePaths(lakehouse.root).ops("rebuilds"), REBUILDS).events(SILVER)
    done = [(row["event"], row["said_by"], row["why"]) for row in events]
    said_by = f"{USER}, approved by {APPROVER}"
    assert done == [(event, said_by, "values outgrow an int") for event in ("started", "done")]

    # Nobody clears the task that did not fit: the run of the rebuild does.
    assert api.wait_for_run(day, PATIENCE_S).state == "success", "the next runs go on with the new tables"
    assert certified(GOLD, lakehouse) == totals

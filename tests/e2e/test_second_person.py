"""Many keys that go, and a table that is built anew, in a real Airflow: one person asks, and another one approves."""

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
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, RunDay
from tests.e2e.people import APPROVER, answer_all
from tests.support.documents.specs import write_specs

pytestmark = pytest.mark.slow

SILVER, GOLD = "silver.shrinking_readings", "gold.shrinking_totals"
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


@pytest.fixture(scope="module")
def shrunk(api: AirflowApi, start_day: RunDay, lakehouse: Settings) -> Run:
    """The second day of the domain, whose snapshot lacks three sensors of five."""
    trials.deliver(lakehouse.landing, "shrinking", FIRST, [(sensor, 1) for sensor in "abcde"])
    assert api.wait_for_run(start_day("shrinking", FIRST), PATIENCE_S).state == "success"
    trials.deliver(lakehouse.landing, "shrinking", SECOND, [("a", 1), ("b", 2)])
    return api.wait_for_run(start_day("shrinking", SECOND), PATIENCE_S)


@pytest.mark.timeout(900)
def test_keys_that_many_go_when_another_person_lets_them(
    api: AirflowApi, approver: AirflowApi, shrunk: Run, lakehouse: Settings
) -> None:
    stopped = api.task(shrunk, SILVER)
    assert (shrunk.state, stopped.state, stopped.try_number) == ("failed", "failed", 1)
    said = "\n".join(api.log(stopped))
    version = table_facts("bronze.shrinking_readings", lakehouse.root).certified_version
    assert f"{SILVER}: 3 of 5 keys (60 %) would be deleted" in said
    assert f"the link Delete approval of this task opens the form for {SILVER} and source version {version}" in said
    assert [row["sensor"] for row in certified(SILVER, lakehouse)] == list("abcde")

    filled_in = filled_in_form(api, stopped, "Delete approval")
    assert (filled_in["table"], int(filled_in["version"])) == (SILVER, version)
    asked = {**filled_in, "version": version, "reason": "a greenhouse was closed"}
    run = api.trigger("delete_approval", asked)
    shown = approve_in_turn(api, approver, run, f"Delete 3 of 5 keys of {SILVER}?")
    assert f"Why they may be deleted, says {USER}: **a greenhouse was closed**" in shown
    assert "such as sensor=" in shown

    # Nobody clears the stopped task: the run of the approval does.
    assert api.wait_for_run(shrunk, PATIENCE_S).state == "success"
    assert certified(SILVER, lakehouse) == [{"sensor": "a", "value": 1}, {"sensor": "b", "value": 2}]
    assert table_facts(SILVER, lakehouse.root).deleted == 3
    assert "3 deleted" in "\n".join(api.log(api.task(shrunk, SILVER)))


@pytest.mark.timeout(900)
def test_a_table_is_rebuilt_when_another_person_allows_it(
    api: AirflowApi, approver: AirflowApi, shrunk: Run, lakehouse: Settings
) -> None:
    before = {table: table_facts(table, lakehouse.root) for table in (SILVER, GOLD)}
    totals = certified(GOLD, lakehouse)
    write_specs(lakehouse.tables, trials.snapshots("bigint"), domain=shrunk.dag_id)

    api.clear(shrunk, SILVER)
    assert api.wait_for_run(shrunk, PATIENCE_S).state == "failed"
    filled_in = filled_in_form(api, api.task(shrunk, SILVER), "Table rebuild")
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
    assert api.wait_for_run(shrunk, PATIENCE_S).state == "success", "the next runs go on with the new tables"
    assert certified(GOLD, lakehouse) == totals

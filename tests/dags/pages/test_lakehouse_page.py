"""The page Lakehouse: real requests to Airflow's real API server, about a real ledger."""

from __future__ import annotations

import gc
import re
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

from lakehouse_airflow.pages import reader
from lakehouse_airflow.pages.reader import MOST_AT_ONCE
from lakehouse_airflow.ui.links import dag_path, lakehouse_path, table_path, trigger_path
from millrace.alerts.down_servers import DownServer, DownServers
from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.restricted import NOTHING_RESTRICTED
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.repairs import RepairEvent, Repairs
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Repair
from millrace.control.ops_tables import OpsTables
from millrace.overview.lakehouse import LakehouseReader
from millrace.repair.restoring import RestoreRequest
from millrace.settings import Settings
from tests.support.airflow.logins import login
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import Shown, show
from tests.support.airflow.shown_runs import Ended, add_run
from tests.support.documents.specs import silver_spec

pytestmark = pytest.mark.usefixtures("shown_lakehouse")

PAGE = lakehouse_path("tables")


def test_each_table_has_its_condition_and_its_facts(server: TestClient) -> None:
    page = show(server, PAGE)
    facts = {
        "bronze.orders": [
            "certified version 3 ",
            "load of 2013-01-0",  # the day of the data, as on the other pages
            "24",  # 5 + 12 + 7 rows
            "rows applied by each of the last 3 runs: 5, 12, 7",
        ],
        "silver.orders": ["refused for", "version 1 newest 2"],
        "bronze.bills": ["waits for approval"],
        "bronze.stale": ["stale for"],
        "bronze.unchecked": ["not checked"],
        "bronze.allowed": [f"certified by hand version 1 let pass by {EVIL} at ", f"UTC: {EVIL}"],
        "bronze.wrong": ["bronze.wrong wrong spec"],
    }
    missing = {table: fact for table, of_table in facts.items() for fact in of_table if fact not in page.row(table)}
    assert missing == {}
    assert page.row("bronze.never") == "bronze.never never run"


def test_a_spark_server_that_rests_is_told_above_all_else_also_with_a_filter(server: TestClient) -> None:
    now, servers = utc_now(), DownServers(Settings().absolute().paths)
    down = DownServer(name="s", restarts=10, since=now, again_at=now + timedelta(minutes=40), log=f"{EVIL}.log")
    servers.add(down)
    try:
        for page in (show(server, PAGE), show(server, f"{PAGE}?q=nothing")):
            page.require_own_html()
            assert page.words.index(f"no Spark server {down.cause} {down.way_out}") < page.words.index(
                "Lineage of tables"
            )
    finally:
        servers.remove(down.name)
    assert "no Spark server" not in show(server, PAGE).words


def test_what_needs_a_person_stands_on_top_with_the_action_that_helps(server: TestClient) -> None:
    page = show(server, PAGE)
    links = page.links
    actions = [link for link in links if "/trigger/" in link or "required_actions" in link]
    # Whether a task about silver.orders has failed depends on the tests that ran before.
    assert [re.sub("&task=[^&]*", "", action) for action in actions] == [
        trigger_path("gate_override", table="silver.orders", version=2),
        "/required_actions",
        trigger_path("delete_approval", table="silver.orders", version=99),
        trigger_path("quarantine_replay", table="bronze.orders"),
    ]
    assert links.index(actions[-1]) < links.index(table_path("bronze.orders"), links.index(actions[-1]))
    assert "wrong.yaml, line 3: suorce: unknown key did you mean 'source'?" in page.words
    assert {table_path("bronze.orders", "quarantine"), table_path("silver.orders", "quality")} <= set(links)


@pytest.mark.usefixtures("database")
def test_what_somebody_has_asked_for_leads_to_the_question(server: TestClient, database: Session) -> None:
    form = trigger_path("gate_override", table="silver.orders", version=2)
    waiting = {"approve": Ended("awaiting_input", {}, seconds=(4,))}
    for version in (1, 2):
        conf = {"table": "silver.orders", "version": version, "reason": EVIL, "task": None}
        run = add_run(database, "gate_override", f"manual__{version}", waiting, conf=conf, kind=DagRunType.MANUAL)
        run.triggering_user_name = EVIL
        database.commit()
    for path in (PAGE, table_path("silver.orders")):
        page = show(server, path)
        page.require_own_html()
        assert "/dags/gate_override/runs/manual__2/tasks/approve/required_actions" in page.links
        assert f"Answer the question {EVIL} has asked: let this version pass?" in page.words
        assert [link for link in page.links if link.startswith((form, "/dags/gate_override/runs/manual__1"))] == []
    for run in database.scalars(select(DagRun).where(DagRun.dag_id == "gate_override")):
        database.delete(run)
    database.commit()


def test_an_interrupted_restore_stands_above_all_that_needs_a_person(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings().absolute()
    catalog, ops = load_catalog(settings.tables), OpsTables(settings.paths)
    request = RestoreRequest(catalog.spec("bronze.orders"), 1, False, NOTHING_RESTRICTED)
    decided = Repair(id=request.plan(catalog, ops).id, said_by=EVIL, why=EVIL)
    record = Repairs.record

    def record_and_die(repairs: Repairs, *event: Any) -> None:
        record(repairs, *event)
        raise KeyboardInterrupt

    monkeypatch.setattr(Repairs, "record", record_and_die)
    leases = lakehouse_leases(settings.paths, "run", timedelta(seconds=5))
    with pytest.raises(KeyboardInterrupt):
        request.execute(decided, "run", catalog, ops, leases)
    monkeypatch.undo()
    page = show(server, PAGE)
    page.require_own_html()
    told = f"repair interrupted owner shop-data a restore that {EVIL} decided was interrupted"
    assert page.words.index("bronze.orders repair interrupted") < page.words.index("bronze.wrong wrong spec")
    assert told in page.words
    assert f"lakehouse repair restore bronze.orders --to 1 --execute {decided.id} --why ..." in page.words
    assert dag_path("table_repair") in page.links
    [known] = ops.repairs.open(["bronze.orders"])
    ops.repairs.record(RepairEvent.DONE, known, "", "run")
    assert "repair interrupted" not in show(server, PAGE).words


def test_a_page_loads_nothing_from_elsewhere_and_no_text_of_a_person_becomes_html(server: TestClient) -> None:
    for query in ("", f"?q={EVIL}", f"?sort={EVIL}&domain={EVIL}&state={EVIL}"):
        answer = server.get(PAGE + query, headers=login(server, "ann"))
        assert "alert" in answer.text, "the hostile text is on the page"
        Shown(answer).require_own_html()
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; style-src 'self';" in policy
        assert "unsafe" not in policy
    style = server.get(next(link for link in Shown(answer).links if ".css" in link), headers=login(server, "ann"))
    assert style.headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("?state=refused", ["silver.orders"]),
        ("?layer=gold&domain=shop", ["gold.revenue_daily"]),
        ("?q=AN ORDER", ["bronze.orders"]),
        ("?owner=shop-data", ["bronze.orders", "silver.orders"]),
        ("?owner=shop-data&sort=state", ["silver.orders", "bronze.orders"]),
        ("?q=nothing", []),
        ("?page_no=2", []),
        ("?page_no=-9&state=never%20run&sort=table", ["bronze.never", "gold.revenue_daily"]),
    ],
)
def test_a_filter_and_an_order_choose_the_tables(server: TestClient, query: str, tables: list[str]) -> None:
    page = show(server, PAGE + query)
    body = [row[0] for row in page.rows if row and row[0] in page.tables]
    assert body[-len(tables) :] == tables if tables else "No table fits" in str(page.rows)


@pytest.mark.parametrize("query", ["", "?state=never%20run&q=a+b"])
@pytest.mark.parametrize("path", ["/lakehouse", "/lakehouse/"])
def test_the_short_address_leads_to_the_page_with_its_filter(server: TestClient, path: str, query: str) -> None:
    answer = server.get(path + query, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, PAGE + query)


@pytest.mark.usefixtures("database")
def test_a_form_repeats_the_numbers_that_it_decides_on_and_offers_what_is_known(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    override, deletes = (trigger_path(dag_id, table="silver.orders") for dag_id in ("gate_override", "delete_approval"))
    page = show(server, override)
    page.require_own_html()
    assert "silver.orders refused Rows 11 Certified version 1 newest 2 Rows in quarantine 0" in page.words
    assert "silver.orders version 2 refused: expect_column_max_to_be_between(amount, max_value=9)" in page.words
    headers = login(server, "bob")
    texts = [server.get(form, headers=headers).text for form in (override, deletes)]
    offered = [re.findall(r"<option value='(\d+)'>(.*?)</option>", text) for text in texts]
    assert offered == [[("2", "refused")], [("99", "3 of 4 keys")]]
    replay = server.get(trigger_path("quarantine_replay", table="bronze.orders"), headers=headers).text
    lists = dict(re.findall(r"<datalist id='(\w+)-list'>(.*?)</datalist>", replay))
    assert set(lists) == {"ids", "reason", "set_column", "file"}
    assert "<option value='event_at'>" in lists["set_column"]
    assert re.findall("<option value='(r.)'>rule: &lt;script&gt;", lists["ids"]) == ["r0", "r1", "r2", "r3"]
    assert "'>4 rows</option>" in lists["reason"]
    assert 'formmethod="get"' in replay, "another table can be looked up"
    monkeypatch.setenv("LAKEHOUSE_TABLES", "/nowhere")
    assert "Trigger" in show(server, override).words, "the form works without the numbers"


@pytest.mark.usefixtures("database")
def test_the_form_of_a_rebuild_and_the_page_say_how_the_table_differs_from_its_spec(server: TestClient) -> None:
    form, spec = trigger_path("table_rebuild", table="silver.orders"), Settings().tables / "silver/shop/orders.yaml"
    changed = "silver.orders: its last batch followed another spec, and which one was not recorded"
    assert changed not in show(server, form).words
    text = spec.read_text()
    spec.write_text(text.replace("keys:\n- order_id", "keys:\n- order_id\n- day"))
    assert changed in show(server, form).words
    paths, misfit = Settings().paths, "does not fit only a rebuild makes it fit its spec: "
    assert misfit not in show(server, table_path("silver.orders")).words, "nobody knows the spec before"
    OpsTables(paths).specs.record(silver_spec(), table_id(paths.table("silver.orders")))
    page = show(server, table_path("silver.orders"))
    assert misfit in page.words
    assert "keys: [order_id] becomes [order_id, day] No run writes it any more" in page.words
    assert form in page.links
    spec.write_text(text)
    assert misfit not in show(server, table_path("silver.orders")).words


def test_a_lakehouse_that_cannot_be_read_says_why(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", "/nowhere")
    answer = server.get(PAGE, headers=login(server, "ann"))
    assert (answer.status_code, "no folder of table specs at /nowhere" in answer.text) == (503, True)


def test_pages_that_wait_for_the_storage_leave_threads_for_airflows_own_pages(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_PAGE_WAIT_S", "0.1")
    with ExitStack() as waiting:
        for _ in range(MOST_AT_ONCE):
            waiting.enter_context(reader.lakehouse())
        answer = server.get(PAGE, headers=login(server, "ann"))
        assert (answer.status_code, "other pages wait for its storage" in answer.text) == (503, True)
    assert server.get(PAGE, headers=login(server, "ann")).status_code == 200


def test_what_a_process_has_read_is_out_of_reach_of_the_garbage_collector(server: TestClient) -> None:
    reader._reader.cache_clear()
    gc.unfreeze()
    show(server, PAGE)
    assert gc.get_freeze_count() > 10_000
    show(server, PAGE)
    assert not any(isinstance(each, LakehouseReader) for each in gc.get_objects())

"""`lakehouse erase plan` and `run`: what they show, what they refuse, and what they do without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.job.requests import ErasureRequest
from millrace.control.ledger.erasures import DecidedErasure
from millrace.control.ops_tables import OpsTables
from millrace.erase.certificates import Certificates
from millrace.erase.erasing import Erasure
from millrace.erase.status import erasure_states, state_lines
from millrace.erase.subjects import Subjects
from millrace.erase.suppression import Suppressions
from millrace.errors import BadInputError, ExitCode, NotReadyError
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs
from tests.support.ledger.delta_tables import file_contents

SUBJECT = "C-17"


@pytest.fixture
def shop(settings: Settings) -> Settings:
    """Orders of two customers in bronze and silver, and figures of both in gold."""
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "string"}, "day": {"type": "date"}}
    silver = silver_document(columns=columns, sequence_by=["order_id"])
    gold = gold_document(measures={"orders": "count(*)"})
    keys = {"subject_keys": {"buyer": "customer"}, "erase": {"landing_files": "rewrite"}}
    write_specs(settings.tables, bronze_document(columns=columns, **keys), silver, gold)
    rows = pa.table({"order_id": ["1", "2"], "buyer": [SUBJECT, "C-18"]})
    for table in ("bronze.orders", "silver.orders", "gold.revenue_daily"):
        write_deltalake(str(settings.paths.table(table)), rows.select(["order_id"]) if "gold" in table else rows)
    settings.run_paths.reports.mkdir(parents=True)
    (Path(settings.landing) / "orders").mkdir(parents=True)
    (settings.run_paths.reports / "r.json").write_text('{"message": "key C-17 tied"}')
    return settings


@pytest.fixture
def keys(tmp_path: Path) -> str:
    """A file with the key of a customer."""
    (file := tmp_path / "keys").write_text(f"{SUBJECT}\n")
    return str(file)


def planned(lakehouse: Lakehouse, keys: str) -> dict[str, Any]:
    """Return the plan of an erasure."""
    answer = lakehouse("erase", "plan", "customer", "--subjects", keys, "--request", "DSR-1", "--json")
    assert answer.exit_code == 0, answer.output
    [plan] = json.loads(answer.stdout)
    return dict(plan)


def test_a_plan_says_what_happens_to_each_place_and_names_nobody(
    lakehouse: Lakehouse, shop: Settings, keys: str
) -> None:
    for file in ("date=2013-01-01/a.json", "readme.txt"):
        (delivered := Path(shop.landing) / "orders" / file).parent.mkdir(parents=True, exist_ok=True)
        delivered.write_text('{"buyer": "C-17"}')
    plan = planned(lakehouse, keys)  # the first one makes the salt of its id
    before = file_contents(shop.root)
    assert plan["tables"] == {"bronze.orders": ["buyer"], "silver.orders": ["buyer"], "gold.revenue_daily": []}
    fates = {(each["place"]["name"], each["place"]["part"]): each["fate"] for each in plan["places"]}
    assert fates == {
        ("bronze.orders", "newest version"): "its rows are deleted",
        ("bronze.orders", "log"): "VACUUM deletes it later",
        ("silver.orders", "newest version"): "its rows are deleted",
        ("silver.orders", "log"): "VACUUM deletes it later",
        ("reports", "files"): "these files are deleted",
        ("landing files of bronze.orders", "files"): "their records are taken out of these files",
        ("landing files of no table", "files"): "left for you",
    }
    shown = lakehouse("erase", "plan", "customer", "--subjects", keys, "--request", "DSR-1")
    assert f"--request DSR-1 --execute {plan['id']} --why ..." in " ".join(shown.stdout.split())
    assert "gold.revenue_daily: has no key, and follows by a run" in shown.stdout
    assert SUBJECT not in shown.output
    assert file_contents(shop.root) == before


def test_an_erasure_is_refused_if_a_row_of_the_person_came_since_but_not_for_rows_of_others(
    lakehouse: Lakehouse, shop: Settings, keys: str
) -> None:
    table, plan = str(shop.paths.table("bronze.orders")), planned(lakehouse, keys)
    write_deltalake(table, pa.table({"order_id": ["3"], "buyer": ["C-19"]}), mode="append")
    write_deltalake(table, pa.table({"order_id": ["C-17, a friend"], "buyer": ["C-20"]}), mode="append")
    DeltaTable(table).optimize.compact()
    assert planned(lakehouse, keys)["id"] == plan["id"]
    write_deltalake(table, pa.table({"order_id": ["4"], "buyer": [SUBJECT]}), mode="append")
    refused = run(lakehouse, keys, plan["id"])
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert f"something else than what {plan['id']} has shown" in refused.output


def test_an_erasure_is_refused_under_a_hold_with_who_and_when(lakehouse: Lakehouse, shop: Settings, keys: str) -> None:
    assert lakehouse("hold", "set", "case-17", "gold.revenue_daily", "--why", "court order").exit_code == 0
    plan = planned(lakehouse, keys)
    [hold] = plan["holds"]
    assert ("gold.revenue_daily: " in hold, "for case-17: court order" in hold) == (True, True)
    refused = run(lakehouse, keys, plan["id"])
    assert (refused.exit_code, "case-17: court order" in refused.output) == (ExitCode.BAD_INPUT, True)
    for request, why, cause in (
        ("", "asked", "--request is empty"),
        ("of C-17", "asked", "has a key of a subject"),
        ("DSR-1", "C-17 asked", "the reason has a key"),
    ):
        answer = lakehouse(
            "erase", "run", "customer", "--subjects", keys, "--request", request, "--execute", "x", "--why", why
        )
        assert (answer.exit_code, cause in answer.output) == (ExitCode.BAD_INPUT, True)


def test_a_short_key_may_stand_in_the_name_of_a_request_and_of_a_table(
    shop: Settings, lakehouse: Lakehouse, keys: str
) -> None:
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "bigint"}}
    write_specs(
        shop.tables, bronze_document(table="bronze.orders_2013", columns=columns, subject_keys={"buyer": "customer"})
    )
    write_deltalake(str(shop.paths.table("bronze.orders_2013")), pa.table({"order_id": ["1"], "buyer": [2013]}))
    Path(keys).write_text("2013\n")
    words = ("--subjects", keys, "--request", "DSR 2013", "--json")
    [plan] = json.loads(lakehouse("erase", "plan", "customer", *words).stdout)
    fates = {each["place"]["name"]: each["fate"] for each in plan["places"] if each["place"]["rows"]}
    assert fates == {"bronze.orders_2013": "its rows are deleted"}
    assert "--request 'DSR 2013' --execute" in plan["command"]


def run(lakehouse: Lakehouse, keys: str, plan_id: str) -> Any:
    """Run an erasure by the id of its plan."""
    words = ("--request", "DSR-1", "--execute", plan_id, "--why", "asked for it")
    return lakehouse("erase", "run", "customer", "--subjects", keys, *words)


def test_a_decision_holds_for_its_subjects_and_its_time_alone(shop: Settings) -> None:
    def asked(key: str, **more: Any) -> Erasure:
        return Erasure(
            Subjects("customer", (key,)), "DSR-1", load_catalog(shop.tables), shop, OpsTables(shop.paths), **more
        )

    def dies(request: ErasureRequest) -> None:
        raise NotReadyError(f"{len(request.keys)} key")

    first = asked(SUBJECT)
    plan = first.plan().id
    with pytest.raises(NotReadyError, match="1 key"):
        first.execute(plan, "ann", "asked for it", "cli", dies)
    for other in (asked("C-18"), asked(SUBJECT, now=True)):
        with pytest.raises(BadInputError, match="was decided about other subjects, or in another way"):
            other.execute(plan, "ann", "asked for it", "cli", dies)
    with pytest.raises(NotReadyError, match="1 key"):
        asked(SUBJECT).execute(plan, "ann", "asked for it", "cli", dies)
    [status] = erasure_states(load_catalog(shop.tables), OpsTables(shop.paths), utc_now())
    assert (status.is_done, [table.version for table in status.tables]) == (False, [None] * 3)
    assert next(iter(state_lines(status))).endswith("interrupted; the same command goes on")
    assert asked(SUBJECT).plan().id == plan, "it is not done yet"
    asked(SUBJECT).execute(plan, "ann", "asked for it", "cli", lambda _: None)
    again = asked(SUBJECT).plan()
    assert (again.earlier, again.id == plan) == (1, False), "what is there now, or comes, is erased anew"


def test_a_certificate_under_the_name_of_an_erasure_is_about_its_subjects_alone(
    lakehouse: Lakehouse, shop: Settings, keys: str, tmp_path: Path
) -> None:
    def prove(key: str, request: str) -> Any:
        (file := tmp_path / "others").write_text(f"{key}\n")
        return lakehouse("erase", "prove", "customer", "--subjects", str(file), "--request", request)

    ops, digest = OpsTables(shop.paths), Suppressions(shop.paths).digest_of(Subjects("customer", ("C-71",)))
    ops.erasures.decide(DecidedErasure("x", "DSR-1", "customer", 1, digest, (), "ann", "asked for it"), "cli")
    refused = prove("C-70", "DSR-1")
    assert (refused.exit_code, "DSR-1: other keys were erased" in refused.output) == (ExitCode.BAD_INPUT, True)
    assert prove("C-71", "DSR-2").exit_code == prove("C-71", "DSR-1").exit_code == 0
    [status] = erasure_states(load_catalog(shop.tables), ops, utc_now())
    assert status.certificates == ("2, erased from all versions",)
    assert json.loads(Certificates(shop.paths).all()[-1].text)["keys_digest"] == digest

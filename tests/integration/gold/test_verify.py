"""`lakehouse verify` on real Delta: it finds every stale group, and then no version passes that keeps it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.control.gates.overrides import override
from millrace.control.gates.result import Override
from millrace.errors import ExitCode, Outcome, OverrideError
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import gold_document, query_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day, judge

BRONZE, SILVER, GOLD = TABLES = "bronze.orders", "silver.orders", "gold.revenue_daily"
BY_MONTH = {
    "sources": {
        "o": {"table": SILVER},
        "same": {"table": SILVER, "join": "inner", "on": "same.order_id = o.order_id"},
    },
    "group_by": {"day": "least(o.day, same.day)"},
    "refresh_from": {"o": "trunc(day, 'MM')", "same": "trunc(day, 'MM')"},
}
"""A group of two tables is not traced, so that a run believes `refresh_from`, which is wrong."""


def verify(shop: Lakehouse, **more: Any) -> JobReport:
    return shop.run(GOLD, job=Job.TABLE_VERIFY, **more)


def revenue(shop: Lakehouse) -> dict[date, int]:
    return dict(shop.rows(GOLD, "day", "revenue"))


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """A lakehouse whose gold table has computed the group of the first of the month again, but not of the second."""
    shared.specs(gold_document(**BY_MONTH))
    others = [order(number, 1, of_day=number) for number in range(11, 23)]
    given(shared, SILVER, [order(1, 5), order(2, 7, of_day=2), *others], 1)
    shared.run(GOLD, 1)
    assert verify(shared, sample=1).details["differing"] == 0
    given(shared, SILVER, [order(1, 50, 1), order(2, 70, 1, of_day=2)], 2)
    assert shared.run(GOLD, 2).certified_version == 2, "nothing warns of the stale group"
    assert (revenue(shared)[date(2013, 1, 1)], revenue(shared)[date(2013, 1, 2)]) == (50, 7)
    return shared


def test_a_stale_group_is_found_and_no_version_passes_until_the_table_is_computed_whole_or_a_person_says_so(
    shop: Lakehouse,
) -> None:
    sample = verify(shop, sample=4).details
    assert (sample["groups"], sample["differing"]) == (4, 1), "of groups into which rows fall that have changed since"
    report = verify(shop)
    assert (report.outcome, report.exit_code, report.version) == (Outcome.GATE_FAILED, ExitCode.GATE_FAILED, 2)
    assert (report.details["groups"], report.details["differing"], report.details["sources"]) == (14, 1, {SILVER: 2})
    assert report.details["differences"] == [
        {"group": {"day": "2013-01-02"}, "column": "revenue", "stored": "7", "computed": "70"}
    ]
    *causes, batch = report.notes
    assert causes == [
        f"{GOLD}: refresh_from.{alias} has another value than day in 13 joined rows: when such a row changes, its "
        "group is not computed again"
        for alias in ("o", "same")
    ]
    assert batch.startswith(f"{GOLD}: 1 row of the listed groups was written by batch 1 (version 1, ")
    assert batch.endswith(f"which read all rows of {SILVER} version 1")
    cause, way_out = report.message.split("\n")
    assert cause.startswith(f"{GOLD} version 2 refused: 1 of 14 groups differ from a computation from scratch")
    assert "readers stay on version 2" in cause
    assert f"`lakehouse run --table {GOLD} --reprocess" in way_out

    again = shop.run(GOLD, 2)
    assert (again.outcome, again.checks[0].refuses) == (Outcome.NO_OP, True), "the next gate says so"
    given(shop, SILVER, [order(3, 9, of_day=3)], 3)
    report = shop.run(GOLD, 3)
    assert (report.version, report.certified_version) == (3, 2)
    assert report.checks[0].against == "version 2, whose rows this version keeps"
    assert f"`lakehouse run --table {GOLD} --reprocess" in report.message
    assert any("which `lakehouse verify` found wrong" in note for note in report.notes)

    spec = JobContext(shop.args(GOLD)).spec
    decision = Override(by="ann", reason="known", run_id="x", at=day(3).start)
    with pytest.raises(OverrideError, match="version 2 passed its gate"):
        override(spec, 2, decision, shop.paths)
    override(spec, 3, decision, shop.paths)
    assert Gates(shop.paths).certified(GOLD) == 3
    given(shop, SILVER, [order(4, 9, of_day=3)], 4)
    assert shop.run(GOLD, 4).certified_version == 3, "the override covers no later version"

    whole = shop.run(GOLD, 4, reprocess=True)
    assert (whole.certified_version, whole.version, revenue(shop)[date(2013, 1, 2)]) == (5, 5, 70)
    given(shop, SILVER, [order(5, 9, of_day=1)], 5)
    assert shop.run(GOLD, 5).certified_version == 6, "the fault is forgotten"


@pytest.mark.slow
def test_with_restore_the_rows_of_the_certified_version_come_back_until_then(shop: Lakehouse) -> None:
    shop.specs(gold_document(**BY_MONTH, on_refusal="restore"))
    verify(shop)
    before = revenue(shop)
    given(shop, SILVER, [order(3, 9, of_day=1)], 3)
    assert shop.run(GOLD, 3).certified_version == 4
    assert revenue(shop) == before, "version 4 has the rows of version 2"
    assert not shop.run(GOLD, 3).certified_moved
    assert shop.run(GOLD, 3, reprocess=True).certified_moved
    assert revenue(shop) == {**before, date(2013, 1, 1): 59, date(2013, 1, 2): 70}


MEASURES = {
    "revenue": "sum(o.amount)", "mean": "avg(o.amount / 3)", "total": "sum(cast(o.amount as float) / 7)",
    "none": "max(nullif(o.amount, o.amount))", "first_id": "first(o.order_id)", "upper_id": "upper(first_id)",
    "nan": "max(double('NaN'))", "cancelled": "round(sum(if(o.amount % 2 = 0, 1e16D, 1 - 1e16D)), 0)",
    "counts": "map('a', count(*))",
}  # fmt: skip


def test_rows_that_another_tool_has_changed_are_found_with_their_cause_or_none_and_odd_values_are_no_difference(
    lakehouse: Lakehouse, tmp_path: Path
) -> None:
    groups = {"day": "o.day", "kind": "nullif(o.amount % 2, 0)"}
    lakehouse.specs(silver_document(), gold_document(group_by=groups, measures=MEASURES))
    orders = [order(number, number, of_day=min(number, 4)) for number in range(1, 40)]
    given(lakehouse, SILVER, [*orders, {**order("null", None), "day": None}], 1)
    lakehouse.run(GOLD, 1)
    damaged = copy_lakehouse(lakehouse, tmp_path / "damaged")
    gold, silver = (DeltaTable(str(lakehouse.paths.table(table))) for table in (GOLD, SILVER))
    gold.delete("day = '2013-01-01'")
    gold.update({"revenue": "6"}, predicate="day = '2013-01-02'")
    silver.update({"amount": "8"}, predicate="order_id = 'o3'")
    given(lakehouse, SILVER, [order(40, 9, of_day=5)], 2)
    assert lakehouse.run(GOLD, 2).certified_version == 4
    report = verify(lakehouse)
    differences = sorted(report.details["differences"], key=lambda each: str(each["group"]["day"]))
    assert differences == [
        {"group": {"day": "2013-01-01", "kind": "1"}, "column": "", "stored": "no row", "computed": "a row"},
        {"group": {"day": "2013-01-02", "kind": None}, "column": "revenue", "stored": "6", "computed": "2"},
    ]
    assert report.details["groups"] == 7
    assert report.details["left_out"] == {
        "first_id": "first may depend on the order of the rows",
        "upper_id": "it is computed from first_id",
    }
    left_out, _, *of_table, of_source, batch = report.notes
    assert left_out == f"{GOLD}: first_id was not compared: first may depend on the order of the rows"
    assert of_table == [
        f"{GOLD}: version {version} of the table is no batch: another tool has changed rows ({operation})"
        for version, operation in ((2, "DELETE"), (3, "UPDATE"))
    ]
    assert of_source.endswith(f"version 2 of {SILVER} is no batch: another tool has changed rows (UPDATE)")
    assert "written by batch 1 (version 1" in batch

    add_five_to_revenue(Path(str(damaged.paths.table(GOLD))), version=1)
    report = verify(damaged)
    assert (report.outcome, report.details["differing"]) == (Outcome.GATE_FAILED, 5)
    *_, batch, nothing = report.notes
    assert "5 rows of the listed groups were written by batch 1 (version 1" in batch
    assert "no cause was found" in nothing
    assert f"`lakehouse run --table {GOLD} --reprocess --interval ...` computes all groups again" in nothing


def add_five_to_revenue(table: Path, version: int) -> None:
    """Damage the data files of a version, which no commit says."""
    log = table / f"_delta_log/{version:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for add in (action["add"] for action in actions if "add" in action):
        rows = pq.read_table(table / add["path"])
        at = rows.schema.get_field_index("revenue")
        wrong = rows.set_column(at, rows.schema.field(at), pc.add(rows["revenue"], 5).cast(rows.schema.field(at).type))
        add["path"] = f"damaged-{add['path'].replace('/', '-')}"
        pq.write_table(wrong, table / add["path"])
        add["size"] = (table / add["path"]).stat().st_size
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    for checksum in log.parent.glob("*.crc"):
        checksum.unlink()


def change(shop: Lakehouse, values: dict[str, str], predicate: str | None = None) -> None:
    """Let another tool change rows of the gold table, in a version that its gate passes."""
    delta = DeltaTable(str(shop.paths.table(GOLD)))
    delta.update(values, predicate=predicate)
    judge(shop.paths.root, JobContext(shop.args(GOLD)).spec, delta.version())


def test_rows_of_a_query_are_compared_but_for_what_depends_on_their_order_and_wrong_ones_are_found(
    lakehouse: Lakehouse,
) -> None:
    query = (
        "SELECT day, order_id, amount, orders, third, known, largest FROM (SELECT day, order_id, amount, "
        "count(*) OVER (PARTITION BY day) AS orders, amount / double('3') AS third, map(order_id, amount) AS known, "
        "max_by(order_id, struct(amount, day)) OVER (PARTITION BY day) AS largest FROM o)"
    )
    lakehouse.specs(query_document(GOLD, query=query, refresh_by="day"))
    given(lakehouse, SILVER, [order(1, 5), order(2, 7, of_day=2), {**order(3, None), "day": None}], 1)
    report = lakehouse.run(GOLD, 1)
    assert report.outcome is Outcome.COMMITTED, report.message
    change(lakehouse, {"largest": "'the other one'"})
    report = verify(lakehouse, sample=2)
    assert (report.version, report.outcome) == (2, Outcome.NO_OP), report.message
    assert (report.details["groups"], report.details["differing"]) == (2, 0)
    assert report.details["left_out"] == {"largest": "max_by may depend on the order of the rows"}

    change(lakehouse, {"amount": "6"}, "order_id = 'o1'")
    change(lakehouse, {"third": "2.5"}, "order_id = 'o2'")
    found = verify(lakehouse)
    assert (found.outcome, found.details["groups"], found.details["differing"]) == (Outcome.GATE_FAILED, 4, 3)
    differences = found.details["differences"]
    values = ("column", "stored", "computed")
    assert {(each["group"]["amount"], *(each[name] for name in values)) for each in differences} == {
        ("6", "", "a row", "no row"),
        ("5", "", "no row", "a row"),
        ("7", "third", "[2.5]", f"[{7 / 3}]"),
    }


def test_what_cannot_be_verified_says_what_to_do(lakehouse: Lakehouse, shop: Lakehouse) -> None:
    assert verify(lakehouse).message.endswith("Run gold.revenue_daily and its gate first.")
    assert lakehouse.run(SILVER, job=Job.TABLE_VERIFY).outcome is Outcome.BAD_INPUT
    shop.specs(gold_document(**BY_MONTH, measures={"orders": "count(*)", "revenue": "max(o.amount)"}))
    changed = verify(shop)
    assert (changed.outcome, "its spec has changed since version 2" in changed.message) == (Outcome.NOT_READY, True)
    shop.specs(gold_document(**BY_MONTH))
    for file in DeltaTable(str(shop.paths.table(SILVER))).file_uris():
        Path(file).unlink()
    gone = verify(shop)
    assert (gone.outcome, "is not readable any more" in gone.message) == (Outcome.NOT_READY, True)

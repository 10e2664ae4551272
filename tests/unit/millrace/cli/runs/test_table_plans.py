"""`lakehouse plan`: what a run would do; nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millrace.control.planning.advice import Advice
from millrace.control.planning.run_plans import TablePlan
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, write_specs
from tests.support.ledger.delta_tables import day
from tests.support.silver.known_customers import known_customer, shop_documents


def land_orders(settings: Settings, day: str = "2013-01-01", source: str = "orders") -> None:
    """Deliver one file of two orders for `day`."""
    folder = Path(settings.landing) / source / f"date={day}"
    folder.mkdir(parents=True)
    lines = [f'{{"order_id": "{number}", "amount": 5, "day": "{day}"}}' for number in (1, 2)]
    (folder / "orders.json").write_text("\n".join(lines) + "\n")


class TestPlan:
    def test_each_table_reads_what_the_table_before_it_will_bring_and_nothing_is_written(
        self, lakehouse: Lakehouse, settings: Settings, tmp_path: Path
    ) -> None:
        of_days = {"sources": {"o": {"table": "gold.revenue_daily"}}, "measures": {"all": "sum(o.revenue)"}}
        write_specs(settings.tables, gold_document("gold.above", **of_days))
        land_orders(settings)
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        answer = lakehouse("plan", "--domain", "shop", "--interval", "2013-01-01")
        assert answer.exit_code == 0, answer.stderr
        assert "1 new of 1 file" in answer.stdout
        *_, silver, gold, last = [line for line in answer.stdout.splitlines() if "will bring" in line]
        assert "reads what bronze.orders will bring" in silver
        assert "reads what silver.orders will bring" in gold
        assert "gold.above" in last
        assert "reads what gold.revenue_daily will bring" in last
        alone = lakehouse("plan", "--interval", "2013-01-01", "--table", "bronze.orders")
        assert (alone.exit_code, "silver.orders" in alone.stdout) == (0, False)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before

    def test_a_table_whose_rows_wait_for_another_comes_after_it(self, lakehouse: Lakehouse, settings: Settings) -> None:
        received, customers, *orders = shop_documents(known_customer(other_table="silver.z"))
        write_specs(settings.tables, received, {**customers, "table": "silver.z"}, *orders)
        land_orders(settings)
        stopped = lakehouse("plan", "--interval", "2013-01-01").stdout.splitlines()
        assert any("silver.orders" in line and "waits for bronze.customers: " in line for line in stopped)
        land_orders(settings, source="customers")
        answer = lakehouse("plan", "--interval", "2013-01-01")
        assert answer.exit_code == 0, answer.stderr
        silver = [line for line in answer.stdout.splitlines() if "silver." in line.partition("reads")[0]]
        assert [line.split()[0] for line in silver] == ["silver.z", "silver.orders"], "not by name"
        assert "reads what bronze.orders and silver.z will bring" in silver[1]

    def test_a_changed_table_that_will_read_new_rows_is_not_said_to_have_nothing_new(self) -> None:
        advice = Advice(
            "silver.orders", nothing_new=False, message="nothing new in bronze.orders; the table is changed"
        )
        plan = TablePlan("silver.orders", day(), advice)
        assert plan.message == "nothing new in bronze.orders; the table is changed"
        after = replace(plan, after=("bronze.orders",))
        assert after.message == "reads what bronze.orders will bring; the table is changed"
        reads = replace(advice, message="bronze.orders version 2", sources={"bronze.orders": (1, 2)})
        assert replace(after, advice=reads).message == "reads what bronze.orders will bring; bronze.orders version 2"

    def test_each_day_is_planned_and_each_missing_source_named(self, lakehouse: Lakehouse, settings: Settings) -> None:
        land_orders(settings, "2012-12-31")
        answer = lakehouse("plan", "--interval", "2012-12-31", "--to", "2013-01-01")
        assert answer.exit_code == ExitCode.NOT_READY
        days = [line for line in answer.stdout.splitlines() if line.startswith("shop, ")]
        assert days == ["shop, 2012-12-31", "shop, 2013-01-01"]
        assert answer.stdout.count("no landing folder") == 3
        assert answer.stdout.count("waits for bronze.orders: no landing folder") == 2
        assert "orders/date=2013-01-01" in answer.stdout
        [to_do] = [line for line in answer.stdout.splitlines() if line.startswith("to do")]
        assert to_do.startswith("to do for bronze.orders: The source has not delivered yet")

    def test_one_of_several_domains_must_be_named(self, lakehouse: Lakehouse, settings: Settings) -> None:
        write_specs(settings.tables, bronze_document("bronze.trips"), domain="travel")
        answer = lakehouse("plan", "--interval", "2013-01-01")
        assert answer.exit_code == ExitCode.WRONG_USAGE
        assert "--domain shop or travel" in answer.stderr

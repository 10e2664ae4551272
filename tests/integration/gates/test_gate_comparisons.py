"""Gates that compare a version with its interval, earlier versions and other tables, on real Delta."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.contracts.job.args import Job
from include.contracts.job.report import CheckResult, JobReport
from include.control.gates.gates import Gates
from include.errors import Outcome
from spark_jobs.layers.gate import changed_rows
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.delta_tables import day
from tests.support.ledger.gate_results import last_passed

BRONZE, SILVER, GOLD, KNOWN = "bronze.orders", "silver.orders", "gold.revenue_daily", "bronze.known"
EXISTS = "expect_column_values_to_exist_in_other_table"


def rule(name: str, action: str = "fail", warn: Any = None, **arguments: Any) -> dict[str, Any]:
    return {name: arguments, "action": action, **({"warn": warn} if warn else {})}


def state_rules(lakehouse: Lakehouse, *rules: dict[str, Any], **changes: Any) -> None:
    lakehouse.specs(bronze_document(expectations=list(rules), **changes))


def the_check(report: JobReport) -> CheckResult:
    [check] = report.checks
    assert check.error == ""
    return check


def deliver_known(lakehouse: Lakehouse, number: int, *ids: str) -> None:
    path = lakehouse.folder / "landing" / "known" / f"date={day(number).start:%Y-%m-%d}" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps({'order_id': one})}\n" for one in ids))


class TestFreshness:
    def test_the_newest_value_is_compared_with_the_end_of_the_interval_and_not_the_clock(
        self, lakehouse: Lakehouse
    ) -> None:
        fresh = rule("expect_table_to_be_fresh", warn={"max_age": "12 hours"}, column="event_at", max_age="36 hours")
        state_rules(lakehouse, fresh)
        lakehouse.deliver(1, "a.json", [order(1, 1, hour=20)])
        lakehouse.deliver(2, "a.json", [order(2, 2, hour=6, of_day=2)])
        lakehouse.deliver(4, "a.json", [order(3, 3, hour=1)])
        first, second, fourth = (lakehouse.run(BRONZE, number) for number in (1, 2, 4))

        check = the_check(first)
        assert (check.passed, check.observed) == (True, "2013-01-01T20:00:00+00:00")
        assert check.against == "2013-01-02T00:00:00+00:00"
        warned = the_check(second)
        assert (warned.passed, warned.action, warned.severity) == (False, "warn", "warning")
        assert (second.certified_version, second.outcome) == (second.version, Outcome.COMMITTED)
        assert any("max_age=12 hours" in note for note in second.notes)
        refused = the_check(fourth)
        assert (refused.passed, refused.action, refused.observed) == (False, "fail", "2013-01-02T06:00:00+00:00")
        assert fourth.certified_version == second.version
        assert "against 2013-01-05T00:00:00+00:00" in fourth.message

    def test_a_run_of_an_old_interval_passes_on_a_table_that_has_newer_rows(self, lakehouse: Lakehouse) -> None:
        state_rules(lakehouse, rule("expect_table_to_be_fresh", column="day", max_age="1 days"))
        for number in (3, 1):
            lakehouse.deliver(number, "a.json", [order(number, 1, of_day=number)])
        assert [the_check(lakehouse.run(BRONZE, number)).passed for number in (3, 1)] == [True, True]

    def test_as_of_the_commit_old_rows_are_stale_whatever_interval_they_are_for(self, lakehouse: Lakehouse) -> None:
        state_rules(lakehouse, rule("expect_table_to_be_fresh", column="event_at", max_age="30 days", as_of="commit"))
        lakehouse.deliver(1, "a.json", [order(1, 1)])
        assert not the_check(lakehouse.run(BRONZE, 1)).passed

    def test_a_table_without_a_value_is_not_fresh(self, lakehouse: Lakehouse) -> None:
        state_rules(lakehouse, rule("expect_table_to_be_fresh", column="event_at", max_age="30 days"))
        lakehouse.deliver(1, "a.json", [{"order_id": "o1"}])
        check = the_check(lakehouse.run(BRONZE, 1))
        assert (check.passed, check.observed) == (False, None)


class TestRowCount:
    NEAR = "expect_table_row_count_to_be_near_median"

    def days(self, lakehouse: Lakehouse, counts: list[int]) -> list[JobReport]:
        for number, rows in enumerate(counts, start=1):
            lakehouse.deliver(number, "a.json", [order(f"{number}.{one}", one) for one in range(rows)])
        return [lakehouse.run(BRONZE, number) for number in range(1, len(counts) + 1)]

    @pytest.mark.slow
    def test_rows_of_a_run_are_held_against_the_last_certified_runs(self, lakehouse: Lakehouse) -> None:
        band = {"max_percent": 200}
        near = rule(self.NEAR, warn=band, rows="applied", of_last=2, min_percent=50, max_percent=400)
        state_rules(lakehouse, near)
        first, second, third, fourth, fifth = self.days(lakehouse, [2, 2, 2, 9, 5])

        for report, known in ((first, 0), (second, 1)):
            assert the_check(report).passed
            assert the_check(report).not_judged == f"{known} of 2 certified versions are known before this one"
            assert any("was not checked" in note for note in report.notes), "the report names the rule"
            assert report.certified_version == report.version
        assert (the_check(third).passed, the_check(third).not_judged, third.notes) == (True, "", ())
        assert the_check(third).observed == {"rows": 2, "median": 2.0, "percent": 100.0}
        assert (the_check(fourth).passed, the_check(fourth).action) == (False, "fail")
        assert fourth.certified_version == third.version
        assert (the_check(fifth).passed, the_check(fifth).action) == (False, "warn"), "5 of 2 are 250 percent"
        assert fifth.certified_version == fifth.version

    def test_rows_of_the_table_have_a_past_from_before_the_rule_was_written(self, lakehouse: Lakehouse) -> None:
        state_rules(lakehouse)
        for number in (1, 2):
            lakehouse.deliver(number, "a.json", [order(number, number)])
            lakehouse.run(BRONZE, number)
        state_rules(lakehouse, rule(self.NEAR, of_last=2, max_percent=150))
        lakehouse.deliver(3, "a.json", [order(3, 3)])
        check = the_check(lakehouse.run(BRONZE, 3))
        assert (check.passed, check.observed) == (False, {"rows": 3, "median": 1.5, "percent": 200.0})
        assert check.against == "the last 2 certified versions"


class TestOtherTables:
    def shop(self, lakehouse: Lakehouse, **more: Any) -> None:
        known = {"order_id": {"type": "string"}}
        exists = rule(EXISTS, column="order_id", other_table=KNOWN, other_column="order_id", **more)
        lakehouse.specs(bronze_document(KNOWN, columns=known), bronze_document(expectations=[exists]))

    @pytest.mark.slow
    def test_values_that_another_table_lacks_refuse_the_version_until_it_has_them(self, lakehouse: Lakehouse) -> None:
        self.shop(lakehouse)
        deliver_known(lakehouse, 1, "o1")
        lakehouse.run(KNOWN, 1)
        lakehouse.deliver(1, "a.json", [order(1, 1), order(2, 2), order(2, 3), order(None, 4)])
        refused = lakehouse.run(BRONZE, 1)
        check = the_check(refused)
        assert (check.passed, check.unexpected_rows, check.samples) == (False, 2, ("o2",))
        assert check.against == "bronze.known version 1"
        assert "is failed by 2 rows, such as o2, against bronze.known version 1" in refused.message
        assert lakehouse.run(BRONZE, 1, job=Job.QUALITY_GATE).outcome is Outcome.GATE_FAILED

        deliver_known(lakehouse, 2, "o2")
        lakehouse.run(KNOWN, 2)
        assert Gates(lakehouse.paths).result(BRONZE, 1, "any") is None
        second_report = lakehouse.run(BRONZE, 1, job=Job.QUALITY_GATE)
        assert (second_report.outcome, second_report.certified_version) == (Outcome.NO_OP, 1)
        assert the_check(second_report).against == "bronze.known version 2"

    @pytest.mark.slow
    def test_values_are_looked_up_where_either_table_changed(
        self, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(changed_rows, "FEW_ROWS", -1000)
        self.shop(lakehouse)
        deliver_known(lakehouse, 1, "o1")
        lakehouse.run(KNOWN, 1)
        lakehouse.deliver(1, "a.json", [order(1, 1)])
        lakehouse.deliver(2, "a.json", [order(1, 2), order(2, 2), order(None, 4)])
        first, refused = (lakehouse.run(BRONZE, number) for number in (1, 2))
        assert the_check(first).judged_by == "all rows"
        check = the_check(refused)
        assert (check.passed, check.unexpected_rows, check.samples) == (False, 1, ("o2",))
        assert check.judged_by == f"the change since version {first.version} and {KNOWN} version 1"

        deliver_known(lakehouse, 2, "o2")
        lakehouse.run(KNOWN, 2)
        check = the_check(lakehouse.run(BRONZE, 2, job=Job.QUALITY_GATE))
        assert (check.passed, check.unexpected_rows, check.against) == (True, 0, f"{KNOWN} version 2")
        assert check.judged_by == f"the change since version {refused.version} and {KNOWN} version 1"

    def test_so_large_a_share_as_mostly_says_must_be_there(self, lakehouse: Lakehouse) -> None:
        self.shop(lakehouse, mostly=0.5)
        deliver_known(lakehouse, 1, "o1")
        lakehouse.run(KNOWN, 1)
        lakehouse.deliver(1, "a.json", [order(1, 1), order(2, 2)])
        assert the_check(lakehouse.run(BRONZE, 1)).passed

    def test_a_table_that_has_no_certified_version_cannot_be_compared_with(self, lakehouse: Lakehouse) -> None:
        self.shop(lakehouse)
        lakehouse.deliver(1, "a.json", [order(1, 1)])
        [check] = lakehouse.run(BRONZE, 1).checks
        assert not check.passed
        assert check.error == "bronze.known has no certified version yet: run it and its gate first"

    def test_a_combination_of_columns_must_be_there_as_one(self, lakehouse: Lakehouse) -> None:
        both = {
            "column_list": ["order_id", "day"],
            "other_table": BRONZE,
            "other_column_list": ["order_id", "day"],
        }
        rules = [rule("expect_compound_columns_to_exist_in_other_table", **both)]
        lakehouse.specs(bronze_document(), silver_document(expectations=rules))
        lakehouse.deliver(1, "a.json", [order(1, 1)])
        lakehouse.run(BRONZE, 1)
        assert the_check(lakehouse.run(SILVER, 1)).passed


class TestReconciliation:
    RECONCILES = "expect_table_to_reconcile_with_source"

    @pytest.mark.slow
    def test_silver_and_gold_are_held_against_what_they_have_read(self, lakehouse: Lakehouse) -> None:
        of_keys = rule(self.RECONCILES, source=BRONZE, measure="count(*)", source_measure="count(DISTINCT order_id)")
        of_rows = rule(
            self.RECONCILES,
            warn={"tolerance_percent": 10},
            source=SILVER,
            measure="sum(orders)",
            source_measure="count(*) + 1",
            tolerance_percent=60,
        )
        lakehouse.specs(
            bronze_document(), silver_document(expectations=[of_keys]), gold_document(expectations=[of_rows])
        )
        lakehouse.deliver(1, "a.json", [order(1, 1), order(1, 2, hour=1), order(2, 3)])
        _, silver, gold = lakehouse.run_all(1, BRONZE, SILVER, GOLD)
        check = the_check(silver)
        assert (check.passed, check.observed) == (True, {"own": 2, "source": 2})
        assert check.against == "bronze.orders version 1"
        short = the_check(gold)
        assert (short.passed, short.action, short.observed) == (False, "warn", {"own": 2, "source": 3})
        assert gold.certified_version == gold.version

    @pytest.mark.slow
    def test_a_measure_without_a_value_does_not_pass_and_says_so(self, lakehouse: Lakehouse) -> None:
        empty = rule(self.RECONCILES, source=BRONZE, measure="sum(amount)", source_measure="sum(amount)")
        wrong = rule(self.RECONCILES, "warn", source=BRONZE, measure="sum(amuont)", source_measure="count(*)")
        lakehouse.specs(bronze_document(), silver_document(expectations=[empty, wrong]))
        lakehouse.deliver(1, "a.json", [order(1, None)])
        _, report = lakehouse.run_all(1, BRONZE, SILVER)
        first, second = report.checks
        assert not first.passed
        assert first.error == "sum(amount) and sum(amount) has no value; use coalesce(..., 0) to replace NULL"
        assert "amuont" in second.error


class TestDrift:
    @pytest.mark.slow
    def test_a_column_that_came_is_drift_unless_it_is_allowed(self, lakehouse: Lakehouse) -> None:
        stable = "expect_table_columns_to_be_stable"
        state_rules(lakehouse, rule(stable), on_drift="evolve")
        lakehouse.deliver(1, "a.json", [order(1, 1)])
        lakehouse.deliver(2, "a.json", [order(2, 2, colour="red")])
        first, second = (lakehouse.run(BRONZE, number) for number in (1, 2))
        assert the_check(first).not_judged == "there is no certified version before this one"
        check = the_check(second)
        assert (check.passed, check.observed) == (False, {"added": ["colour string"]})
        assert check.against == f"{BRONZE} version {first.version}"
        # The commit that adds the column has the rows of before, and so their certificate; the batch has none.
        assert second.certified_version == second.version - 1
        assert last_passed(Gates(lakehouse.paths), BRONZE) == first.version

        state_rules(lakehouse, rule(stable, allow=["added"]), on_drift="evolve")
        assert lakehouse.run(BRONZE, 2, job=Job.QUALITY_GATE).certified_version == second.version

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "limit", "observed"),
        [
            ("expect_column_null_share_to_be_stable", {"max_change": 0.2}, {"before": 0.0, "now": 0.5}),
            ("expect_column_distribution_to_be_stable", {"max_psi": 0.25}, None),
        ],
    )
    def test_other_values_than_in_the_last_certified_version_are_told(
        self, lakehouse: Lakehouse, name: str, limit: dict[str, float], observed: Any
    ) -> None:
        state_rules(lakehouse, rule(name, column="amount", **limit))
        lakehouse.deliver(1, "a.json", [order(one, one) for one in range(10)])
        lakehouse.deliver(2, "a.json", [order(f"n{one}", None) for one in range(10)])
        first, second = (lakehouse.run(BRONZE, number) for number in (1, 2))
        assert the_check(first).not_judged == "there is no certified version before this one"
        check = the_check(second)
        assert not check.passed
        assert check.against == f"{BRONZE} version {first.version}"
        assert check.observed == observed if observed else check.observed["changed_most"] == "no value"
        assert second.certified_version == first.version

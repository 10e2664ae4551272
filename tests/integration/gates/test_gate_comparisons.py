"""Gates that compare a version with its interval, earlier versions and other tables, on real Delta."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import CheckResult, JobReport
from millrace.control.gates.gates import Gates
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.gate_results import last_passed

BRONZE, SILVER, KNOWN = "bronze.orders", "silver.orders", "bronze.known"
FRESH, NEAR = "expect_table_to_be_fresh", "expect_table_row_count_to_be_near_median"
EXISTS, RECONCILES = "expect_column_values_to_exist_in_other_table", "expect_table_to_reconcile_with_source"
FIRST = "there is no certified version before this one"


def rule(name: str, action: str = "fail", warn: Any = None, **arguments: Any) -> dict[str, Any]:
    return {name: arguments, "action": action, **({"warn": warn} if warn else {})}


def state_rules(lakehouse: Lakehouse, *rules: dict[str, Any], **changes: Any) -> None:
    lakehouse.specs(bronze_document(expectations=list(rules), **changes))


def checks(report: JobReport) -> tuple[CheckResult, ...]:
    assert {check.error for check in report.checks} == {""}
    return report.checks


def the_check(report: JobReport) -> CheckResult:
    [check] = checks(report)
    return check


def test_the_newest_value_is_compared_with_the_end_of_the_interval_or_the_time_of_the_commit(
    lakehouse: Lakehouse,
) -> None:
    columns = {**bronze_document()["columns"], "paid_at": {"type": "timestamp"}}
    state_rules(
        lakehouse,
        rule(FRESH, warn={"max_age": "12 hours"}, column="event_at", max_age="36 hours"),
        rule(FRESH, "warn", column="day", max_age="1 days"),
        rule(FRESH, "warn", column="event_at", max_age="30 days", as_of="commit"),
        rule(FRESH, "warn", column="paid_at", max_age="30 days"),
        columns=columns,
    )
    first = given(lakehouse, BRONZE, [order(1, 1, hour=20)], 1)
    second = given(lakehouse, BRONZE, [order(2, 2, hour=6, of_day=2)], 2)
    first_again = given(lakehouse, BRONZE, [order(4, 4)], 1)
    fourth = given(lakehouse, BRONZE, [order(3, 3, hour=1)], 4)

    of_time, of_day, of_commit, of_nothing = checks(first)
    assert (of_time.passed, of_time.observed) == (True, "2013-01-01T20:00:00+00:00")
    assert of_time.against == "2013-01-02T00:00:00+00:00"
    assert (of_day.passed, of_commit.passed) == (True, False), "the row is old, whatever interval it is for"
    assert (of_nothing.passed, of_nothing.observed) == (False, None), "without a value it is not fresh"
    warned, of_day, *_ = checks(second)
    assert (warned.passed, warned.action, warned.severity, of_day.passed) == (False, "warn", "warning", True)
    assert (second.certified_version, second.outcome) == (second.version, Outcome.COMMITTED)
    assert any("max_age=12 hours" in note for note in second.notes)
    assert [check.passed for check in checks(first_again)[:2]] == [True, True], "the table has newer rows"
    refused, of_day, *_ = checks(fourth)
    assert (refused.passed, refused.action, refused.observed) == (False, "fail", "2013-01-02T06:00:00+00:00")
    assert not of_day.passed
    assert fourth.certified_version == first_again.version
    assert "against 2013-01-05T00:00:00+00:00" in fourth.message


def test_rows_of_a_run_and_of_the_table_are_compared_with_the_last_certified_runs(lakehouse: Lakehouse) -> None:
    of_run = rule(NEAR, warn={"max_percent": 200}, rows="applied", of_last=2, min_percent=50, max_percent=400)
    of_table = rule(NEAR, "warn", of_last=2, max_percent=150)
    reports = []
    for number, rows in enumerate([2, 2, 2, 9, 5], start=1):
        state_rules(lakehouse, of_run, *([of_table] if number > 2 else []))
        reports.append(
            given(lakehouse, BRONZE, [order(f"{number}.{at}", at, of_day=number) for at in range(rows)], number)
        )
    first, second, third, fourth, fifth = reports

    for report, known in ((first, 0), (second, 1)):
        assert the_check(report).passed
        assert the_check(report).not_judged == f"{known} of 2 certified versions are known before this one"
        assert any("was not checked" in note for note in report.notes), "the report names the rule"
        assert report.certified_version == report.version
    check, whole = checks(third)
    assert (check.passed, check.not_judged) == (True, "")
    assert check.observed == {"rows": 2, "median": 2.0, "percent": 100.0}
    assert (whole.passed, whole.observed) == (False, {"rows": 6, "median": 3.0, "percent": 200.0}), "it has a past"
    assert whole.against == "the last 2 certified versions"
    assert not any("was not checked" in note for note in third.notes)
    assert (checks(fourth)[0].passed, checks(fourth)[0].action) == (False, "fail")
    assert fourth.certified_version == third.version
    assert (checks(fifth)[0].passed, checks(fifth)[0].action) == (False, "warn"), "5 of 2 are 250 percent"
    assert fifth.certified_version == fifth.version


def rule_of_known(lakehouse: Lakehouse, **more: Any) -> dict[str, Any]:
    lakehouse.specs(bronze_document(KNOWN, columns={"order_id": {"type": "string"}}))
    return rule(EXISTS, column="order_id", other_table=KNOWN, other_column="order_id", **more)


def test_values_that_another_table_lacks_refuse_the_version_until_it_has_them(lakehouse: Lakehouse) -> None:
    state_rules(lakehouse, rule_of_known(lakehouse), rule_of_known(lakehouse, mostly=0.5))
    rows = [order(1, 1), order(1, 5), order(2, 2), order(2, 3), order(None, 4)]
    unknown, _ = given(lakehouse, BRONZE, rows).checks
    assert not unknown.passed
    assert unknown.error == "bronze.known has no certified version yet: run it and its gate first"

    given(lakehouse, KNOWN, [{"order_id": "o1"}], 1)
    refused = lakehouse.run(BRONZE, 1, job=Job.QUALITY_GATE)
    assert refused.outcome is Outcome.GATE_FAILED
    check, of_half = checks(refused)
    assert (check.passed, check.unexpected_rows, check.samples) == (False, 2, ("o2",))
    assert check.against == "bronze.known version 1"
    assert "is failed by 2 rows, such as o2, against bronze.known version 1" in refused.message
    assert of_half.passed, "half of the values is enough"

    given(lakehouse, KNOWN, [{"order_id": "o2"}], 2)
    assert Gates(lakehouse.paths).result(BRONZE, 1, "any") is None
    passed = lakehouse.run(BRONZE, 1, job=Job.QUALITY_GATE)
    assert (passed.outcome, passed.certified_version) == (Outcome.NO_OP, 1)
    assert checks(passed)[0].against == "bronze.known version 2"


@pytest.mark.slow
def test_values_are_looked_up_where_either_table_changed(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_GATE_READS", "changes")
    state_rules(lakehouse, rule_of_known(lakehouse))
    given(lakehouse, KNOWN, [{"order_id": "o1"}], 1)
    first = given(lakehouse, BRONZE, [order(1, 1)], 1)
    refused = given(lakehouse, BRONZE, [order(1, 2), order(2, 2), order(None, 4)], 2)
    assert the_check(first).judged_by == "all rows"
    check = the_check(refused)
    assert (check.passed, check.unexpected_rows, check.samples) == (False, 1, ("o2",))
    assert check.judged_by == f"the change since version {first.version} and {KNOWN} version 1"

    given(lakehouse, KNOWN, [{"order_id": "o2"}], 2)
    check = the_check(lakehouse.run(BRONZE, 2, job=Job.QUALITY_GATE))
    assert (check.passed, check.unexpected_rows, check.against) == (True, 0, f"{KNOWN} version 2")
    assert check.judged_by == f"the change since version {refused.version} and {KNOWN} version 1"


def test_a_version_is_compared_with_what_its_batch_has_read_and_by_queries(lakehouse: Lakehouse) -> None:
    of_keys = rule(RECONCILES, source=BRONZE, measure="count(*)", source_measure="count(DISTINCT order_id)")
    of_rows = rule(
        RECONCILES,
        warn={"tolerance_percent": 10},
        source=BRONZE,
        measure="count(*)",
        source_measure="count(*)",
        tolerance_percent=60,
    )
    empty = rule(RECONCILES, "warn", source=BRONZE, measure="sum(amount)", source_measure="sum(amount)")
    wrong = rule(RECONCILES, "warn", source=BRONZE, measure="sum(amuont)", source_measure="count(*)")
    pair = {"column_list": ["order_id", "day"], "other_column_list": ["order_id", "day"]}
    exist = rule("expect_compound_columns_to_exist_in_other_table", other_table=BRONZE, **pair)
    query = rule(
        "expect_query_to_return_no_rows",
        query="SELECT s.order_id, s.amount FROM {table} s LEFT JOIN {bronze.orders} b "
        "ON b.order_id = s.order_id AND b.amount = s.amount WHERE s.order_id = 'o2' AND b.order_id IS NULL",
    )
    lakehouse.specs(silver_document(expectations=[of_keys, exist, query, empty, wrong, of_rows]))
    given(lakehouse, BRONZE, [order(1, None), order(1, None, hour=1), order(2, None)])
    silver = given(lakehouse, SILVER, [order(1, None, hour=1), order(2, None)])

    keys, pairs, returned, without_value, misspelt, rows = silver.checks
    assert (keys.passed, keys.observed, pairs.passed) == (True, {"own": 2, "source": 2}, True)
    assert {check.against for check in (keys, returned, rows)} == {"bronze.orders version 1"}
    # The join finds no row of bronze for an amount that is null.
    returns = (False, 1, ('{"order_id":"o2","amount":null}',))
    assert (returned.passed, returned.unexpected_rows, returned.samples) == returns
    assert without_value.error == "sum(amount) and sum(amount) has no value; use coalesce(..., 0) to replace NULL"
    assert (without_value.passed, "amuont" in misspelt.error) == (False, True)
    assert (rows.passed, rows.action, rows.observed) == (False, "warn", {"own": 2, "source": 3})
    assert silver.certified_version is None, "the query refuses it"


@pytest.mark.slow
def test_other_columns_and_values_than_in_the_last_certified_version_are_drift_unless_that_is_allowed(
    lakehouse: Lakehouse,
) -> None:
    stable, nulls = "expect_table_columns_to_be_stable", "expect_column_null_share_to_be_stable"
    distribution = rule("expect_column_distribution_to_be_stable", column="amount", max_psi=0.25)
    rules = rule(stable), rule(nulls, column="amount", max_change=0.2), distribution
    state_rules(lakehouse, *rules, on_drift="evolve")
    lakehouse.deliver(1, "a.json", [order(at, at) for at in range(10)])
    lakehouse.deliver(2, "a.json", [order(f"n{at}", None, colour="red") for at in range(10)])
    first, second = (lakehouse.run(BRONZE, number) for number in (1, 2))
    assert {check.not_judged for check in checks(first)} == {FIRST}
    of_columns, of_nulls, of_values = checks(second)
    assert {check.passed for check in checks(second)} == {False}
    assert {check.against for check in checks(second)} == {f"{BRONZE} version {first.version}"}
    assert of_columns.observed == {"added": ["colour string"]}
    assert of_nulls.observed == {"before": 0.0, "now": 0.5}
    assert of_values.observed["changed_most"] == "no value"
    # The commit that adds the column has the rows of before, and so their certificate; the batch has none.
    assert second.certified_version == second.version - 1
    assert last_passed(Gates(lakehouse.paths), BRONZE) == first.version

    state_rules(lakehouse, rule(stable, allow=["added"]), on_drift="evolve")
    assert lakehouse.run(BRONZE, 2, job=Job.QUALITY_GATE).certified_version == second.version

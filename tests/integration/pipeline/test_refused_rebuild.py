"""A rebuilt table that its gate refuses takes the place of the one in use only if a person lets exactly it pass."""

from __future__ import annotations

import pytest

from millrace.control.ops_tables import OpsTables
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import gold_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse
from tests.support.silver.rebuilt_shop import BRONZE, DAYS, GOLD, SILVER, right_rows, visible_rows, write_shop_specs


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    write_shop_specs(shared)
    for number in (1, 2):
        given(shared, BRONZE, DAYS[number], number, "a.json")
    shared.run_well(2, SILVER, GOLD)
    return shared


def test_a_person_may_let_the_new_table_pass_as_its_gate_has_refused_it_and_no_later_version(shop: Lakehouse) -> None:
    before = visible_rows(shop)
    rule = {"expect_table_row_count_to_be_between": {"min_value": 99}, "action": "fail", "reason": "a big shop"}
    of_values = {"expect_column_values_to_be_in_set": {"column": "orders", "value_set": [777]}, "action": "fail"}
    shop.specs(gold_document(expectations=[rule, of_values]))
    nothing = shop.rebuild(GOLD, allow_refused=True, why="small")
    assert (nothing.outcome, "there is nothing to let pass" in nothing.message) == (Outcome.BAD_INPUT, True)
    failed = "expect_table_row_count_to_be_between(min_value=99) observed 2 (a big shop)"
    failed += "; expect_column_values_to_be_in_set(orders, value_set=[777]) is failed by 2 rows"
    cause, *ways_out = shop.rebuild(GOLD).message.split("\n")
    assert cause.startswith(f"{GOLD}: the rebuilt table did not pass its gate: {failed}, such as ")
    assert ways_out == [
        f"Readers keep the table in use. Correct the data or the rule, then: lakehouse rebuild {GOLD}",
        f"If the new rows may be read as they are: lakehouse rebuild {GOLD} --allow-refused --why ...; in Airflow, the "
        "form Table rebuild with Allow refused.",
    ]
    plan = shop.rebuild(GOLD, dry_run=True, allow_refused=True).for_people
    asked = f"{GOLD}: its gate has refused version 1 of the new table: {failed}"
    assert asked in plan.split("\n\n"), "without values: it stands in a question"
    other = shop.rebuild(GOLD, allow_refused=True, plan=plan.replace("observed 2", "observed 98"), why="small")
    assert (other.outcome, "else than what was approved" in other.message) == (Outcome.BAD_INPUT, True)
    given(shop, BRONZE, DAYS[3], 3, "a.json")
    assert shop.run(SILVER, 3).exit_code is ExitCode.OK
    later = shop.rebuild(GOLD, allow_refused=True, plan=plan, why="small")
    assert (later.outcome, "observed 3 (a big shop)" in later.message) == (Outcome.GATE_FAILED, True), later.message
    assert visible_rows(shop)[GOLD] == before[GOLD]

    passed = shop.rebuild(GOLD, allow_refused=True, why="small")

    assert passed.exit_code is ExitCode.OK, passed.message
    assert visible_rows(shop) == right_rows(3)
    verdicts = OpsTables(shop.paths).gates.verdicts(GOLD)
    assert verdicts
    assert verdicts.certified_by_hand
    assert (verdicts.certified_by_hand.by, verdicts.certified_by_hand.reason) == ("ann", "small")
    assert shop.run(GOLD, 3).outcome is Outcome.NO_OP
    retry = shop.rebuild(GOLD, allow_refused=True, plan=plan, why="small")
    assert (retry.outcome, "this run has rebuilt it" in retry.message) == (Outcome.NO_OP, True), retry.message

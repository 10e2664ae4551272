"""The overviews that a process keeps: those of tables about which nothing has changed are made only once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.verdicts import Verdicts, summarize
from millrace.control.ledger.deletes import Deletes
from millrace.control.ledger.states.measures import Measures
from millrace.control.ledger.states.table_state import StatePart, TableState
from millrace.control.maintenance.retention import CERTIFIED_READERS
from millrace.overview.lakehouse import KnownOverviews, OverviewInput
from millrace.overview.tables.freshness import freshness_of
from millrace.overview.tables.table_overview import Condition, Questions
from tests.support.documents.specs import bronze_spec, silver_spec
from tests.support.ledger.delta_tables import day
from tests.support.ledger.gate_results import verdict

BRONZE = bronze_spec()
SILVER = silver_spec(
    expectations=[{"expect_table_to_be_fresh": {"column": "event_at", "max_age": "1 days"}, "action": "fail"}]
)
NOW = day(9).end
NEVER_RUN = TableState({})
NOTHING_ASKED = Questions()


def state(*parts: StatePart) -> TableState:
    return TableState({type(part).__name__: part.model_dump(mode="json") for part in parts})


def passed_with(newest_row: str) -> Verdicts:
    """The verdict about version 1, which passed, with the time of its newest row."""
    check = CheckResult(rule=SILVER.table_rules[0].rule, action="fail", passed=True, observed=newest_row)
    return summarize([verdict("t", 1).model_copy(update={"checks": (check,)})])


def certified() -> TableState:
    """The state of a table whose version 1 passed, with rows as new as `NOW`."""
    measures = Measures(table_id="t", version=1, mark="m", rows=9, size=5000, files=1, partitions=1)
    return state(measures, passed_with(NOW.isoformat()))


def facts(silver: TableState, questions: Questions = NOTHING_ASKED) -> dict[str, OverviewInput]:
    return {
        BRONZE.table: OverviewInput(BRONZE, NEVER_RUN, NOTHING_ASKED, ()),
        SILVER.table: OverviewInput(SILVER, silver, questions, ()),
    }


def test_only_a_table_about_which_something_changed_is_made_again() -> None:
    known = KnownOverviews()
    first = known.read(facts(NEVER_RUN), NOW)
    assert [*map(id, known.read(facts(NEVER_RUN), NOW))] == [*map(id, first)]
    before = first[1]
    passed = certified()
    _, after = known.read(facts(passed), NOW)
    assert (before.condition, after.condition) == (Condition.NEVER_RUN, Condition.CERTIFIED)
    assert [reader.name for reader in after.readers] == [CERTIFIED_READERS]
    asked = Deletes(SILVER.table, "t", NOW, BRONZE.table, "s", 5, 3, 4, ("order_id=1",), "it lacks them")
    _, waits = known.read(facts(passed, Questions(deletes=[asked])), NOW)
    assert waits.condition is Condition.APPROVAL
    _, answered = known.read(facts(passed), NOW)
    assert answered == after
    assert [each.table for each in known.read({BRONZE.table: facts(passed)[BRONZE.table]}, NOW)] == [BRONZE.table]


def test_rows_become_stale_though_nothing_changes() -> None:
    known, unchanged = KnownOverviews(), facts(certified())
    later = NOW + timedelta(days=1, seconds=1)
    assert [known.read(unchanged, at)[1].condition for at in (NOW, NOW, later, later)] == [
        *2 * [Condition.CERTIFIED],
        *2 * [Condition.STALE],
    ]
    forever = freshness_of(SILVER, passed_with("9999-12-31T00:00:00+00:00"), None)
    assert forever.stale_at == datetime.max.replace(tzinfo=UTC), "the last day of all calendars is never stale"

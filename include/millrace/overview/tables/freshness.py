"""The age of a table's newest row, against the rule of its spec."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.verdicts import Verdicts
from millrace.control.ledger.states.recent_batches import RecentBatch

_FRESH = "expect_table_to_be_fresh"


@dataclass(frozen=True)
class Freshness:
    """The newest row of a table, as its last gate has seen it.

    Attributes:
        newest: the time of the newest row.
        max_age: the age that the spec allows at the end of an interval, as it states it.
        stale_at: when the table becomes stale: `max_age` after the newest row, and the length of an interval later,
            since the next run comes only then.
    """

    newest: datetime
    max_age: str
    stale_at: datetime


def freshness_of(spec: AnySpec, verdicts: Verdicts | None, last: RecentBatch | None) -> Freshness | None:
    """Return the freshness of a table; None if its spec has no rule for it, or the rule was
    not evaluated yet, or its column is restricted."""
    rule = next((rule for rule in spec.table_rules if rule.name == _FRESH), None)
    results = verdicts.judged[-1].checks if verdicts and verdicts.judged else ()
    observed = next((result.observed for result in results if rule and result.rule == rule.rule), None)
    if rule is None or observed in (None, RESTRICTED):
        return None
    newest, max_age = datetime.fromisoformat(str(observed)), str(rule.arguments["max_age"])
    newest = newest if newest.tzinfo else newest.replace(tzinfo=UTC)
    between_runs = last.interval_end - last.interval_start if last else timedelta()
    try:
        stale_at = newest + AGE.parse(max_age) + between_runs
    except OverflowError:  # a time in the year 9999, which sources write for "never"
        stale_at = datetime.max.replace(tzinfo=UTC)
    return Freshness(newest, max_age, stale_at)

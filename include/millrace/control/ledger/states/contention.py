"""What the writers of a table lost to other writers, all together: a part of its state (ADR 25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import Field

from millrace.contracts.job.contention import LostRace
from millrace.control.ledger.states.table_state import StatePart


class Contention(StatePart):
    """The sums over all runs that waited for another writer or lost a commit to one.

    Attributes:
        waited_s: the seconds of waiting for leases.
        retries: the attempts after the first one of each run.
        lost: Delta's error class -> the number of lost commits.
    """

    waited_s: float = 0.0
    retries: int = 0
    lost: dict[str, int] = Field(default_factory=dict)


def add_contention(before: Contention, waited_s: float, attempts: int, lost: Iterable[LostRace]) -> Contention:
    """Return the sums with one more run."""
    return Contention(
        table_id=before.table_id,
        waited_s=before.waited_s + waited_s,
        retries=before.retries + max(attempts - 1, 0),
        lost=dict(Counter(before.lost) + Counter(race.conflict for race in lost)),
    )

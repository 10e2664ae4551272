"""What is told of a key in its order, and what follows from it: last states and periods, by lists alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

State = tuple[int | None, str | None]
"""Amount and note."""

Timeline = list[tuple[Any, State | None]]
"""Of one key: each sequence and the state from it on, in order; None is a delete."""


class Period(NamedTuple):
    """A state of a key and when it held."""

    start: Any
    end: Any
    amount: int | None
    note: str | None


def timelines(told: Iterable[tuple[str, Any, int, State | None]]) -> dict[str, Timeline]:
    """The timeline of each key, from (key, sequence, hash, state): of equal sequences the greatest hash counts."""
    by_key: dict[str, dict[Any, tuple[int, State | None]]] = defaultdict(dict)
    for key, sequence, source_hash, state in told:
        known = by_key[key].get(sequence)
        if known is None or known[0] < source_hash:
            by_key[key][sequence] = (source_hash, state)
    return {key: [(at, state) for at, (_, state) in sorted(found.items())] for key, found in by_key.items()}


def filled(told: Timeline) -> Timeline:
    """A timeline in which a null leaves a value as it was, since the key was deleted last."""
    found: Timeline = []
    for sequence, state in told:
        before = found[-1][1] if found else None
        if state and before:
            amount, note = state
            state = (before[0] if amount is None else amount, before[1] if note is None else note)
        found.append((sequence, state))
    return found


def periods(told: Timeline) -> list[Period]:
    """The periods of a timeline, where a change of the amount begins one and the note is as it was last."""
    found: list[Period] = []
    for sequence, state in told:
        last = found[-1] if found and found[-1].end is None else None
        if last and (state is None or state[0] != last.amount):
            found[-1] = last._replace(end=sequence)
            last = None
        if last and state:
            found[-1] = last._replace(note=state[1])
        elif state:
            found.append(Period(sequence, None, *state))
    return found


def overlapping(found: Sequence[Period]) -> bool:
    """Whether periods of one key overlap, end before they begin, or go on beside another."""
    in_order = sorted(found, key=lambda period: period.start)
    ends = [period.end for period in in_order]
    follows = zip(ends, [period.start for period in in_order[1:]], strict=False)
    return any(end is None or end > start for end, start in follows) or any(
        end is not None and end <= period.start for end, period in zip(ends, in_order, strict=True)
    )

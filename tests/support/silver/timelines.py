"""The events of a key in their order, and the states and periods that follow from them, computed with lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

State = tuple[int | None, str | None]
"""Amount and note."""

Timeline = list[tuple[Any, State | None]]
"""The sequences of one key in order, each with the state that it begins; None is a delete."""


class Period(NamedTuple):
    """A state of a key, with its start and end."""

    start: Any
    end: Any
    amount: int | None
    note: str | None


def timelines(events: Iterable[tuple[str, Any, int, State | None]]) -> dict[str, Timeline]:
    """Return key -> timeline, from (key, sequence, hash, state); of equal sequences the greatest hash counts."""
    by_key: dict[str, dict[Any, tuple[int, State | None]]] = defaultdict(dict)
    for key, sequence, source_hash, state in events:
        other = by_key[key].get(sequence)
        if other is None or other[0] < source_hash:
            by_key[key][sequence] = (source_hash, state)
    return {key: [(at, state) for at, (_, state) in sorted(states.items())] for key, states in by_key.items()}


def fill_nulls(timeline: Timeline) -> Timeline:
    """Return a timeline in which a null keeps the earlier value, unless the key was deleted in between."""
    filled: Timeline = []
    for sequence, state in timeline:
        before = filled[-1][1] if filled else None
        if state and before:
            amount, note = state
            state = (before[0] if amount is None else amount, before[1] if note is None else note)
        filled.append((sequence, state))
    return filled


def periods(timeline: Timeline) -> list[Period]:
    """Return the periods of a timeline: a new amount begins a period, whose note is its last note."""
    result: list[Period] = []
    for sequence, state in timeline:
        last = result[-1] if result and result[-1].end is None else None
        if last and (state is None or state[0] != last.amount):
            result[-1] = last._replace(end=sequence)
            last = None
        if last and state:
            result[-1] = last._replace(note=state[1])
        elif state:
            result.append(Period(sequence, None, *state))
    return result


def overlapping(of_key: Sequence[Period]) -> bool:
    """Whether periods of one key overlap, end before they begin, or continue next to another."""
    in_order = sorted(of_key, key=lambda period: period.start)
    ends = [period.end for period in in_order]
    follows = zip(ends, [period.start for period in in_order[1:]], strict=False)
    return any(end is None or end > start for end, start in follows) or any(
        end is not None and end <= period.start for end, period in zip(ends, in_order, strict=True)
    )

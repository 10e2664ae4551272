"""What bronze and silver must have after each batch, by plain Python: it shares no code with what it checks.

A batch follows the spec that planned it. A row stays accepted or refused as when a batch read it, until one reads it
again; a key that is computed again has the values of the present spec.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.support.silver.timelines import periods

File = tuple[int, str]
"""Day and name of a landing file."""
FIXED_AMOUNT = 7
"""The amount to which people fix rows."""


class Event(NamedTuple):
    """One line of a landing file; an amount that is a text does not fit. `op` is `delete`, `void` or nothing."""

    order_id: str | None
    amount: int | str | None
    note: str | None
    event_seq: int
    op: str | None = None


Lines = list[Event | str]
"""The lines of a file; a text is a broken one."""


@dataclass(frozen=True)
class Row:
    """The line at a place of a content of a file, as a load has brought it.

    Its stamp is the number of the batch that bronze names for it, which is a part of what silver receives.
    """

    line: Any
    file: File
    content: int
    place: int
    load: int
    stamp: int = field(compare=False)

    @property
    def origin(self) -> tuple[Any, ...]:
        return self.file, self.content, self.place

    def is_refused_by_bronze(self, most: int) -> bool:
        return isinstance(self.line, str) or (isinstance(self.line.amount, int) and self.line.amount > most)

    def fixed(self, is_fixed: bool) -> Row:
        """Return the row as a person has fixed it, if so."""
        return replace(self, line=self.line._replace(amount=FIXED_AMOUNT)) if is_fixed else self


@dataclass(frozen=True)
class Bronze:
    """Bronze after a batch; `id` is the number of the rebuild that made it, `last` that of its last load.

    It has the content of each file, the rows, those in quarantine with their stamps, and those of replaced files with
    the loads that replaced them.
    """

    id: int = 0
    files: dict[File, int] = field(default_factory=dict)
    rows: frozenset[Row] = frozenset()
    refused: dict[Row, int] = field(default_factory=dict)
    gone: dict[Row, int] = field(default_factory=dict)
    last: int = 0

    def load(self, files: dict[File, tuple[int, Lines]], most: int, number: int) -> Bronze:
        """Return bronze after load `number` of files, each with the number of its content."""
        rows = {
            Row(line, file, content, place, number, number)
            for file, (content, lines) in files.items()
            for place, line in enumerate(lines)
        }
        refused = {row: number for row in rows if row.is_refused_by_bronze(most)}
        return replace(
            self,
            files=self.files | {file: content for file, (content, _) in files.items()},
            rows=frozenset(row for row in self.rows if row.file not in files) | (rows - refused.keys()),
            refused={row: stamp for row, stamp in self.refused.items() if row.file not in files} | refused,
            gone=self.gone | {row: number for row in self.rows if row.file in files},
            last=number,
        )

    def replay(self, rows: Iterable[Row], number: int) -> Bronze:
        """Return bronze after load `number`, of rows of its quarantine."""
        return replace(self, rows=self.rows | {replace(row, load=number, stamp=number) for row in rows}, last=number)


class SilverSpec(NamedTuple):
    """What changes in a silver spec: the least amount, the ops that delete, the factor of amounts, the length of the
    key, and the sign of the sequence; another table is needed for the last two.
    """

    least: int = 0
    deletes: tuple[str, ...] = ("delete",)
    factor: int = 1
    key_length: int = 9
    sign: int = 1

    def key(self, event: Event) -> str | None:
        return event.order_id and event.order_id[: self.key_length]

    def amount(self, event: Event) -> int | None:
        return event.amount * self.factor if isinstance(event.amount, int) else None

    def refuses(self, event: Event) -> bool:
        amount = None if event.op in self.deletes else self.amount(event)
        return event.order_id is None or (amount is not None and amount < self.least)


class Reading(NamedTuple):
    """An event as a spec reads it: its order, in which a fixed row comes last, and its state; none for a delete."""

    order: tuple[int, bool]
    state: tuple[int | None, str | None] | None


@dataclass(frozen=True)
class Silver:
    """A silver table after a batch of a spec; `id` is the number of the rebuild that made it.

    It has what was read of each key, in order; the rows of bronze that were accepted, and refused, each with its stamp;
    those that replays brought, each with whether it was fixed; the table of bronze that it has read, and its last load.
    """

    keeps_history: bool
    id: int = 0
    spec: SilverSpec = SilverSpec()  # noqa: RUF009 - it is a tuple
    lines: dict[str, list[Reading]] = field(default_factory=dict)
    accepted: frozenset[Row] = frozenset()
    refused: dict[Row, int] = field(default_factory=dict)
    replayed: dict[Row, bool] = field(default_factory=dict)
    read: tuple[int, int] = (-1, 0)

    @property
    def states(self) -> dict[str, Any]:
        """Return key -> sequence and state of its last event, or all its periods."""
        if self.keeps_history:
            all_periods = {key: periods([(at[0], state) for at, state in line]) for key, line in self.lines.items()}
            return {key: of_key for key, of_key in all_periods.items() if of_key}
        last = {key: line[-1] for key, line in self.lines.items()}
        return {key: (order[0], state) for key, (order, state) in last.items() if state}

    def merge(self, bronze: Bronze, spec: SilverSpec, again: int | None = None) -> Silver:
        """Return the table after a batch that reads what is new in bronze, and day `again` again."""
        is_other = self.read[0] != bronze.id
        read = {row for row in bronze.rows if is_other or row.load > self.read[1] or row.file[0] == again}
        gone = {row for row, load in bronze.gone.items() if load > self.read[1]}
        if is_other:
            gone = {*self.accepted, *self.refused}
        refused = {row: row.stamp for row in read if spec.refuses(row.line)}
        kept = {row: is_fixed for row, is_fixed in self.replayed.items() if bronze.files.get(row.file) == row.content}
        merged = replace(
            self,
            spec=spec,
            accepted=(self.accepted - gone - read) | (read - refused.keys()),
            refused={row: stamp for row, stamp in self.refused.items() if row not in gone | read} | refused,
            replayed=kept,
            read=(bronze.id, bronze.last),
        )
        retracted = {spec.key(row.line) for row in gone | (self.replayed.keys() - kept.keys())}
        events = dict.fromkeys(read - refused.keys(), False)
        return merged._with(events, retracted | {*(self.lines if is_other else ())}, is_again=again is not None)

    def replay(self, rows: dict[Row, bool], spec: SilverSpec) -> Silver:
        """Return the table after a replay of rows, each with whether it is fixed."""
        return replace(self, spec=spec, replayed=self.replayed | rows)._with(rows, ())

    def _with(self, rows: dict[Row, bool], retracted: Collection[str | None], *, is_again: bool = False) -> Silver:
        """Return the table with new rows; retracted keys, and late or repeated ones of a history, have all rows."""
        events, lines = _readings(rows, self.spec), dict(self.lines)
        every = _readings(dict.fromkeys(self.accepted, False) | self.replayed, self.spec)
        for key in {*events, *retracted} - {None}:
            line, new = self.lines.get(key, []), events.get(key, [])
            last = line[-1] if line else Reading((-(10**9), False), None)
            is_late = any(each.order[0] <= last.order[0] and each.order != last.order for each in new)
            if key in retracted or (self.keeps_history and (is_again or is_late)):
                lines[key] = every.get(key, [])
            elif self.keeps_history:  # The row that is stored stays as it was read.
                lines[key] = [*line, *(each for each in new if each.order != last.order or not last.state)]
            else:
                lines[key] = _in_order([*line, *new])
        return replace(self, lines={key: line for key, line in lines.items() if line})


def _readings(rows: dict[Row, bool], spec: SilverSpec) -> dict[str, list[Reading]]:
    """Return key -> the events of rows, in order, as the spec reads them."""
    readings = dict[str, list[Reading]]()
    for row, is_fixed in rows.items():
        event: Event = row.fixed(is_fixed).line
        state = None if event.op in spec.deletes else (spec.amount(event), event.note)
        readings.setdefault(spec.key(event) or "", []).append(Reading((event.event_seq * spec.sign, is_fixed), state))
    return {key: _in_order(of_key) for key, of_key in readings.items()}


def _in_order(readings: Iterable[Reading]) -> list[Reading]:
    """Return the last event of each sequence."""
    return list({each.order[0]: each for each in sorted(readings, key=lambda each: each.order)}.values())


def rows_by_note(silver: Silver, least: int | None, factor: int) -> Iterator[tuple[Any, ...]]:
    """Yield note, number of orders, and `factor` times their amount, of amounts of at least `least`."""
    states = [state for _, state in silver.states.values()]
    rows = [(amount, note) for amount, note in states if least is None or (amount is not None and amount >= least)]
    for note in {note for _, note in rows}:
        amounts = [amount for amount, of_row in rows if of_row == note]
        known = [amount * factor for amount in amounts if amount is not None]
        yield note, len(amounts), sum(known) if known else None


def rows_by_key(silver: Silver, *, is_least: bool) -> Iterator[tuple[Any, ...]]:
    """Yield key, number of its periods, and their greatest or least amount."""
    for key, of_key in silver.states.items():
        amounts = [period.amount for period in of_key if period.amount is not None]
        yield key, len(of_key), (min if is_least else max)(amounts, default=None)

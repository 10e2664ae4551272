"""What a batch found out about its rows that a person should know: which were refused and why, and which keys tied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from include.contracts.interval import Instant

MAX_SAMPLES = 5
"""How many samples a finding has at most."""

MAX_REASONS = 3
"""So many reasons are told each by itself, the commonest; the others in sum."""

_LONGEST_SAMPLE = 60
_MOST_NAMES = 20


class RefusedRows(BaseModel):
    """The rows of a batch that were refused for one reason; a quarantined one with two reasons counts for both.

    Attributes:
        reason: `rule: reason`, as the spec states it.
        action: `quarantine` or `drop`; a dropped row counts for the first of its reasons.
        rows: how many.
        samples: of quarantined rows the ids by which `lakehouse quarantine show` finds them, of dropped ones the
            sources that they came from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str
    action: str
    rows: int
    samples: tuple[str, ...] = ()


class Ties(BaseModel):
    """Keys with several events of one sequence that say different things.

    Attributes:
        keys: how many.
        samples: some of them, as `key=value at sequence`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: int = 0
    samples: tuple[str, ...] = ()


class AbsentKeys(BaseModel):
    """Keys that go, since their source holds them no more.

    Attributes:
        keys: how many.
        of_keys: of how many.
        why: what makes them go.
        samples: some of them, as `key=value`.
        interval_start: start of the interval whose snapshot lacks them; None where that is not why.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: int
    of_keys: int
    why: str
    samples: tuple[str, ...] = ()
    interval_start: Instant | None = None


class UnreadableKeys(BaseModel):
    """Refused records of a full snapshot of which nobody can tell the key, so that it deletes nothing.

    Attributes:
        interval_start: start of the snapshot's interval.
        records: how many there are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    interval_start: Instant
    records: int


class LackingFile(BaseModel):
    """A landing file that lacks declared columns.

    Attributes:
        path: the file.
        columns: the columns; they are null in its rows.
        rows: how many it has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    columns: tuple[str, ...]
    rows: int


class RescuedField(BaseModel):
    """A field whose values fitted no column; they are kept in `_rescued`.

    Attributes:
        field: its name.
        type: the type of the column of that name, which they do not have; empty where no column is declared for it.
        rows: how many rows have such a value.
        samples: some of the values, as text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str
    type: str = ""
    rows: int
    samples: tuple[str | None, ...] = ()


class Findings(BaseModel):
    """What a run's batches found.

    Attributes:
        refused: the refused rows by reason, the commonest first.
        ties: the keys whose state was settled by the hash of the events, for want of a better order.
        absent: the keys that were deleted since their source holds them no more.
        unreadable: the full snapshots that deleted nothing, since keys of theirs cannot be read.
        lacking: the files that lack declared columns.
        rescued: the fields whose values fitted no column, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    refused: tuple[RefusedRows, ...] = ()
    ties: Ties = Ties()
    absent: tuple[AbsentKeys, ...] = ()
    unreadable: tuple[UnreadableKeys, ...] = ()
    lacking: tuple[LackingFile, ...] = ()
    rescued: tuple[RescuedField, ...] = ()

    def lines(self, table: str) -> tuple[str, ...]:
        """A line a finding: what it is, and what can be done.

        >>> refused = RefusedRows(reason="expect_column_values_to_not_be_null(id): id is null", action="quarantine",
        ...                       rows=1200, samples=("3fa8c1d200b7e6aa",))
        >>> print(*Findings(refused=(refused,)).lines("silver.flights"))
        silver.flights: 1,200 rows went into quarantine: expect_column_values_to_not_be_null(id): id is null. \
See: lakehouse quarantine show silver.flights 3fa8c1d200b7e6aa
        """
        shown, others = self.refused[:MAX_REASONS], self.refused[MAX_REASONS:]
        more = (_further_line(table, others),) if others else ()
        return (
            *(_refused_line(table, one) for one in shown),
            *more,
            *_rescued_lines(table, self.rescued),
            *_tie_lines(table, self.ties),
            *(_absent_line(table, one) for one in self.absent),
            *(_unreadable_line(table, one) for one in self.unreadable),
            *(_lacking_line(table, one) for one in self.lacking),
        )


def together(findings: Iterable[Findings]) -> Findings:
    """What several batches found, as one."""
    every = list(findings)
    ties = [one.ties for one in every]
    samples = tuple(sample for one in ties for sample in one.samples)[:MAX_SAMPLES]
    return Findings(
        refused=by_reason(refused for one in every for refused in one.refused),
        ties=Ties(keys=sum(one.keys for one in ties), samples=samples),
        absent=tuple(absent for one in every for absent in one.absent),
        unreadable=tuple(unreadable for one in every for unreadable in one.unreadable),
        lacking=tuple(lacking for one in every for lacking in one.lacking),
        rescued=_by_field(field for one in every for field in one.rescued),
    )


def by_reason(refused: Iterable[RefusedRows]) -> tuple[RefusedRows, ...]:
    """Those of one reason and action as one, the commonest first."""
    alike: dict[tuple[str, str], RefusedRows] = {}
    for one in refused:
        known = alike.get((one.reason, one.action))
        rows, samples = (known.rows, known.samples) if known else (0, ())
        merged = {"rows": rows + one.rows, "samples": (*samples, *one.samples)[:MAX_SAMPLES]}
        alike[one.reason, one.action] = one.model_copy(update=merged)
    return tuple(sorted(alike.values(), key=lambda one: (-one.rows, one.reason)))


def _by_field(rescued: Iterable[RescuedField]) -> tuple[RescuedField, ...]:
    alike: dict[str, RescuedField] = {}
    for one in rescued:
        known = alike.get(one.field)
        rows, samples = (known.rows, known.samples) if known else (0, ())
        merged = {"rows": rows + one.rows, "samples": tuple(dict.fromkeys((*samples, *one.samples)))[:MAX_SAMPLES]}
        alike[one.field] = one.model_copy(update=merged)
    return tuple(alike[name] for name in sorted(alike))


def _rescued_lines(table: str, rescued: Iterable[RescuedField]) -> Iterator[str]:
    """A line for each column whose values do not fit it, and one for all fields without a column."""
    undeclared: list[RescuedField] = []
    for one in rescued:
        if one.type:
            some = "1 row has a value" if one.rows == 1 else f"{one.rows:,} rows have a value"
            samples = ", ".join(repr(sample)[:_LONGEST_SAMPLE] for sample in one.samples)
            yield f"{table}: {some} of {one.field} that is no {one.type}: null there, kept in _rescued: {samples}"
        else:
            undeclared.append(one)
    if undeclared:
        names = [f"{one.field!r} in {one.rows:,}" for one in undeclared[:_MOST_NAMES]]
        more = f" and {len(undeclared) - _MOST_NAMES:,} fields more" if len(undeclared) > _MOST_NAMES else ""
        yield f"{table}: rows have fields that no column is declared for, kept in _rescued: {', '.join(names)}{more}"


def _refused_line(table: str, refused: RefusedRows) -> str:
    rows = "1 row" if refused.rows == 1 else f"{refused.rows:,} rows"
    if refused.action == "drop":
        return f"{table}: {rows} left out by a rule: {refused.reason}. They came from {', '.join(refused.samples)}"
    see = f" See: lakehouse quarantine show {table} {refused.samples[0]}" if refused.samples else ""
    return f"{table}: {rows} went into quarantine: {refused.reason}.{see}"


def _further_line(table: str, refused: Sequence[RefusedRows]) -> str:
    reasons = "1 further reason" if len(refused) == 1 else f"{len(refused)} further reasons"
    rows = sum(one.rows for one in refused)
    return f"{table}: {reasons} for which rows were refused, {rows:,} times in all. See: lakehouse quarantine list"


def _absent_line(table: str, absent: AbsentKeys) -> str:
    keys = "1 key was" if absent.keys == 1 else f"{absent.keys:,} keys were"
    return f"{table}: {keys} deleted, of {absent.of_keys:,}: {absent.why}, such as {', '.join(absent.samples)}"


def _unreadable_line(table: str, unreadable: UnreadableKeys) -> str:
    records = "a record" if unreadable.records == 1 else f"{unreadable.records:,} records"
    return (
        f"{table}: the full snapshot from {unreadable.interval_start:%Y-%m-%d %H:%M} deleted nothing: {records} of it "
        "were refused, and their keys cannot be read, so that any key it lacks may be theirs.\nWork the quarantine of "
        "the table and of its source, then run the interval with --reprocess; the next snapshot settles it, too."
    )


def _lacking_line(table: str, lacking: LackingFile) -> str:
    rows = "its row" if lacking.rows == 1 else f"all {lacking.rows:,} rows of it"
    return f"{table}: {lacking.path} has no column {', '.join(lacking.columns)}: null in {rows}"


def _tie_lines(table: str, ties: Ties) -> tuple[str, ...]:
    if not ties.keys:
        return ()
    keys = "1 key has" if ties.keys == 1 else f"{ties.keys:,} keys have"
    return (
        f"{table}: {keys} events of one sequence that say different things, such as {'; '.join(ties.samples)}. The "
        "same one of them always wins, whichever comes first, but the source has not said which is right: name a "
        "further column in sequence_by that tells them apart, or have the source deliver one.",
    )

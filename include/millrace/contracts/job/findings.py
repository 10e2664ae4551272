"""The findings of a batch that people should know, such as refused rows with their reasons, and keys that tie."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from millrace.contracts.counted import counted
from millrace.contracts.interval import Instant
from millrace.contracts.strict_model import StrictModel
from millrace.contracts.time_format import MINUTE

INVALID_VALUE = "value does not fit its type"
"""The rule of a value that could not be converted to its type; its reason ends with the value."""

MALFORMED = "malformed record"
"""The rule of a record that could not be parsed."""

ERASED = "erased subject"
"""The start of the rule of a record whose key is that of an erased subject; the kind of the subject follows."""

PARTS = "its parts"
"""The start of what the values of a field must fit of which columns read only parts; their paths follow."""

MAX_SAMPLES = 5
"""The most samples that a finding keeps."""

MAX_REASONS = 3
"""The number of the most frequent reasons that get a line each; the others share a line."""

MOST_FIELDS = 200
"""The most fields without a column that findings name: a source may send any number of them."""

MAX_TEXT = 200
"""How many characters of a field's name, and of a value, findings keep."""

_MAX_SAMPLE_CHARACTERS = 60
_MAX_FIELDS = 20
_QUOTED, _A_PART = re.compile("`(?:[^`]|``)+`"), re.compile(r"[.\[]")


class RefusedRows(StrictModel):
    """The rows of a batch that were refused for one reason.

    Attributes:
        reason: `rule: reason`, as the spec states it.
        action: `quarantine` or `drop`.
        rows: the number of rows; a quarantined row counts for each of its reasons, a dropped row only for the first.
        samples: for quarantined rows the ids that `lakehouse quarantine show` takes, for dropped rows their sources.
    """

    reason: str
    action: str
    rows: int
    samples: tuple[str, ...] = ()


class Ties(StrictModel):
    """Keys with several different events of the same sequence; the samples are written `key=value at sequence`.

    Those of a full snapshot have the sequence of its interval.
    """

    keys: int = 0
    samples: tuple[str, ...] = ()
    of_snapshot: bool = False


class AbsentKeys(StrictModel):
    """Keys that are deleted because their source does not contain them any more.

    Attributes:
        keys: the number of keys.
        of_keys: the number of all keys of the table.
        why: the reason for the delete.
        samples: some of the keys, as `key=value`; none where erased subjects may be among them.
        interval_start: start of the interval whose snapshot lacks them; None for other reasons.
        erased: the rows that approved erasures have deleted from the sources: as many keys may go without being asked.
    """

    keys: int
    of_keys: int
    why: str
    samples: tuple[str, ...] = ()
    interval_start: Instant | None = None
    erased: int = 0


class UnreadableKeys(StrictModel):
    """Refused records of the full snapshot of an interval, which deletes nothing because their keys cannot be read."""

    interval_start: Instant
    records: int


class FileWithoutColumns(StrictModel):
    """A landing file that lacks declared columns, which are null in all its rows."""

    path: str
    columns: tuple[str, ...]
    rows: int


class RescuedValues(StrictModel):
    """The values of one field that fit no column and are kept in `_rescued`.

    Attributes:
        field: the name of the field.
        type: the type of the column that reads the field, or `PARTS` with their paths; empty if no column is declared
            for the field.
        rows: the number of rows with such a value.
        earlier: the number of those whose column has a value: a later one of the same field in the same record.
        samples: some of the values, as text.
    """

    field: str
    type: str = ""
    rows: int
    earlier: int = 0
    samples: tuple[str | None, ...] = ()


class FieldsOfOneColumn(StrictModel):
    """Several fields of a record that are for one column, which is null therefore; all of them are in `_rescued`.

    Attributes:
        fields: their names, which differ only in upper and lower case.
        rows: the number of rows with all of them.
        samples: the values of one of these rows, as text.
    """

    fields: tuple[str, ...]
    rows: int
    samples: tuple[str | None, ...] = ()


class Findings(StrictModel):
    """The findings of a run's batches.

    Attributes:
        refused: the refused rows by reason, the most frequent first.
        ties: the keys whose events had no order, so that the hash of the events decided.
        absent: the keys that were deleted because their source does not contain them any more.
        unreadable: the full snapshots that deleted nothing, because some of their keys cannot be read.
        lacking: the files that lack declared columns.
        rescued: the values that fit no column, by field.
        repeated: the fields that are for one column in one record, where `field_names` are `any_case`.
        further_fields: the number of fields without a column that `rescued` leaves out.
    """

    refused: tuple[RefusedRows, ...] = ()
    ties: Ties = Ties()
    absent: tuple[AbsentKeys, ...] = ()
    unreadable: tuple[UnreadableKeys, ...] = ()
    lacking: tuple[FileWithoutColumns, ...] = ()
    rescued: tuple[RescuedValues, ...] = ()
    repeated: tuple[FieldsOfOneColumn, ...] = ()
    further_fields: int = 0

    def lines(self, table: str) -> tuple[str, ...]:
        """Return one line per finding: what happened, and what can be done.

        >>> refused = RefusedRows(reason="expect_column_values_to_not_be_null(id): id is null", action="quarantine",
        ...                       rows=1200, samples=("3fa8c1d200b7e6aa",))
        >>> print(*Findings(refused=(refused,)).lines("silver.flights"))
        silver.flights: 1,200 rows went into quarantine: expect_column_values_to_not_be_null(id): id is null. \
See: lakehouse quarantine show silver.flights 3fa8c1d200b7e6aa
        """
        return tuple(f"{table}: {text}" for text in self._texts(table))

    def _texts(self, table: str) -> Iterator[str]:
        for refused in self.refused[:MAX_REASONS]:
            rows = counted(refused.rows, "row")
            if refused.action == "drop":
                yield f"{rows} left out by a rule: {refused.reason}. They came from {', '.join(refused.samples)}"
            else:
                see = f" See: lakehouse quarantine show {table} {refused.samples[0]}" if refused.samples else ""
                yield f"{rows} went into quarantine: {refused.reason}.{see}"
        if others := self.refused[MAX_REASONS:]:
            reasons = counted(len(others), "further reason")
            times = sum(refused.rows for refused in others)
            yield f"rows were refused for {reasons}, {counted(times, 'time')} in all. See: lakehouse quarantine list"
        yield from rescued_texts(self.rescued, self.further_fields)
        for repeated in self.repeated:
            rows, names = counted(repeated.rows, "row has", "rows have"), " and ".join(repeated.fields)
            values = ", ".join(repr(sample)[:_MAX_SAMPLE_CHARACTERS] for sample in repeated.samples)
            yield (
                f"{rows} several fields for one column, {names}: null there, all kept in _rescued: {values}\n"
                "Write field_names: exact, with a column for each of them, or have the source write one of them."
            )
        if self.ties.keys:
            keys = counted(self.ties.keys, "key has", "keys have")
            such, wins = f"such as {'; '.join(self.ties.samples)}", "always wins, in any order of arrival"
            if self.ties.of_snapshot:
                yield (
                    f"{keys} different rows in one full snapshot, {such}. The same row {wins}, but the source does not "
                    "say which is right: ask it to deliver each key once."
                )
            else:
                yield (
                    f"{keys} different events of the same sequence, {such}. The same event {wins}, but the source does "
                    "not say which is right: name a further column in sequence_by that orders them, or ask the source "
                    "to deliver such a column."
                )
        for absent in self.absent:
            keys = counted(absent.keys, "key was", "keys were")
            such = f", such as {', '.join(absent.samples)}" if absent.samples else ""
            yield f"{keys} deleted, of {absent.of_keys:,}: {absent.why}{such}"
        for unreadable in self.unreadable:
            records = counted(unreadable.records, "record was", "records were")
            yield (
                f"the full snapshot from {unreadable.interval_start:{MINUTE}} deleted nothing: {records} refused, and "
                "the keys cannot be read, so that any missing key may be among them.\nWork the quarantine of the table "
                "and of its source, then run the interval with --reprocess; or wait for the next snapshot, which also "
                "corrects this."
            )
        for file in self.lacking:
            rows = "its row" if file.rows == 1 else f"all its {file.rows:,} rows"
            yield f"{file.path} has no column {', '.join(file.columns)}: null in {rows}"


def without_value(reason: str) -> str:
    """Return a reason, `rule: reason`, without the value at its end.

    >>> without_value("value does not fit its type: amount is no int: 12: or so")
    'value does not fit its type: amount is no int'
    >>> without_value("expect_between(amount): low: too low")
    'expect_between(amount): low: too low'
    """
    return ": ".join(reason.split(": ", 2)[:2]) if reason.startswith(f"{INVALID_VALUE}: ") else reason


def merge_findings(findings: Iterable[Findings]) -> Findings:
    """Merge the findings of several batches."""
    batches = list(findings)
    samples = tuple(sample for batch in batches for sample in batch.ties.samples)[:MAX_SAMPLES]
    return Findings(
        refused=merge_by_reason(refused for batch in batches for refused in batch.refused),
        ties=Ties(
            keys=sum(batch.ties.keys for batch in batches),
            samples=samples,
            of_snapshot=any(batch.ties.of_snapshot for batch in batches),
        ),
        absent=tuple(absent for batch in batches for absent in batch.absent),
        unreadable=tuple(unreadable for batch in batches for unreadable in batch.unreadable),
        lacking=tuple(file for batch in batches for file in batch.lacking),
        rescued=merge_by_field(values for batch in batches for values in batch.rescued),
        repeated=_merge_repeated(fields for batch in batches for fields in batch.repeated),
        further_fields=sum(batch.further_fields for batch in batches),
    )


def most_frequent(rescued: Iterable[RescuedValues]) -> tuple[tuple[RescuedValues, ...], int]:
    """Return rescued values with bounded texts, and how many of the fields without a column are left out: the rarest.

    >>> kept, further = most_frequent(RescuedValues(field=f"{n:03}" * 99, rows=n) for n in range(MOST_FIELDS + 3))
    >>> len(kept), kept[0].rows, len(kept[0].field), further
    (200, 3, 200, 3)
    """
    values = list(rescued)
    undeclared = sorted((each for each in values if not each.type), key=lambda each: (-each.rows, each.field))
    rare = {each.field for each in undeclared[MOST_FIELDS:]}
    kept = (each for each in values if each.type or each.field not in rare)
    return merge_by_field(_cut(each) for each in kept), len(rare)


def _cut(values: RescuedValues) -> RescuedValues:
    samples = tuple(sample and sample[:MAX_TEXT] for sample in values.samples)
    return values.model_copy(update={"field": values.field[:MAX_TEXT], "samples": samples})


def merge_by_reason(refused: Iterable[RefusedRows]) -> tuple[RefusedRows, ...]:
    """Merge refused rows with the same reason and action, and return the most frequent first."""
    merged: dict[tuple[str, str], RefusedRows] = {}
    for rows in refused:
        earlier = merged.get((rows.reason, rows.action), rows.model_copy(update={"rows": 0, "samples": ()}))
        samples = (*earlier.samples, *rows.samples)[:MAX_SAMPLES]
        merged[rows.reason, rows.action] = rows.model_copy(
            update={"rows": earlier.rows + rows.rows, "samples": samples}
        )
    return tuple(sorted(merged.values(), key=lambda rows: (-rows.rows, rows.reason)))


def merge_by_field(rescued: Iterable[RescuedValues]) -> tuple[RescuedValues, ...]:
    """Add the values that fit no column up by field."""
    merged: dict[str, RescuedValues] = {}
    for values in rescued:
        earlier = merged.get(values.field, values.model_copy(update={"rows": 0, "earlier": 0, "samples": ()}))
        samples = tuple(dict.fromkeys((*earlier.samples, *values.samples)))[:MAX_SAMPLES]
        counts = {"rows": earlier.rows + values.rows, "earlier": earlier.earlier + values.earlier}
        merged[values.field] = values.model_copy(update={**counts, "samples": samples})
    return tuple(merged[field] for field in sorted(merged))


def _merge_repeated(repeated: Iterable[FieldsOfOneColumn]) -> tuple[FieldsOfOneColumn, ...]:
    merged: dict[tuple[str, ...], FieldsOfOneColumn] = {}
    for each in repeated:
        earlier = merged.setdefault(each.fields, each.model_copy(update={"rows": 0}))
        merged[each.fields] = earlier.model_copy(update={"rows": earlier.rows + each.rows})
    return tuple(merged[fields] for fields in sorted(merged))


def rescued_texts(rescued: Iterable[RescuedValues], further_fields: int = 0) -> Iterator[str]:
    """Yield a text for each column with values that do not fit it, and one for all fields without a column.

    Args:
        rescued: the values.
        further_fields: the number of fields without a column that it leaves out.

    >>> list(rescued_texts([RescuedValues(field="amount", type="int", rows=2)]))
    ['2 rows have a value of amount that is no int: null there, kept in _rescued']
    """
    undeclared: list[RescuedValues] = []
    for values in rescued:
        if values.type:
            shown = ", ".join(repr(sample)[:_MAX_SAMPLE_CHARACTERS] for sample in values.samples)
            samples = f": {shown}" if shown else ""
            lost = f"that is no {values.type}: null there, kept in _rescued"
            if _A_PART.search(_QUOTED.sub("", values.field)):
                lost = f"that is no {values.type}, or not the last of its name: not stored, kept in _rescued"
            more = f"with more than {values.type}: kept whole in _rescued"
            if values.rows > values.earlier:
                rows = counted(values.rows - values.earlier, "row has a value", "rows have a value")
                yield f"{rows} of {values.field} {more if values.type.startswith(PARTS) else lost}{samples}"
            if values.earlier:
                rows = counted(values.earlier, "row has", "rows have")
                yield f"{rows} {values.field} several times: the last value counts, _rescued has the others{samples}"
        else:
            undeclared.append(values)
    if undeclared:
        names = [f"{values.field!r} in {values.rows:,}" for values in undeclared[:_MAX_FIELDS]]
        number = max(len(undeclared) - _MAX_FIELDS, 0) + further_fields
        more = f" and {number:,} fields more" if number else ""
        yield f"rows have fields that no column is declared for, kept in _rescued: {', '.join(names)}{more}"

"""Propose the first spec of a silver table: keys, sequence and expectations, each with the evidence for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import yaml

from millrace.contracts.counted import counted
from millrace.contracts.spec.column_types import BYTES, FLOATING, TIMES, TRUTH, types_of
from millrace.contracts.spec.nested_type import NESTED
from millrace.contracts.spec.table_spec import parse_spec
from millrace.inference.delivered_rows import ColumnFacts, DeliveredRows
from millrace.inference.first_spec import flow
from millrace.specs.files import SpecLoader

_NO_KEYS = (*types_of(FLOATING, TRUTH, BYTES), *NESTED)
_LIKE_A_KEY = re.compile(r"(^|_)(id|key|code|no|nr|number|uuid|guid|tailnum|sku)$")
_LAST_CHANGE = re.compile(r"updat|modif|chang|event|version|seq")
_FIRST_TIME = re.compile(r"creat|open|birth|start|since")
_MOST_PAIRS = 12
"""The number of columns of which pairs are tried as keys."""

_MOST_VALUES = 8
"""A text with at most so many different values is taken for one of a list."""

FILE_NAME = "_source_file"
"""The column of a bronze table that orders events if nothing else does."""


@dataclass(frozen=True)
class Keys:
    """The proposed keys of a silver table.

    Attributes:
        keys: the columns that identify a row.
        sequence_by: the column that orders the events of a key, or `FILE_NAME`; empty if the intervals order them.
        evidence: what the delivered rows say, a line each.
    """

    keys: tuple[str, ...]
    sequence_by: str
    evidence: tuple[str, ...]


def propose_keys(rows: DeliveredRows, columns: Mapping[str, ColumnFacts], *, by_day: bool) -> Keys | None:
    """Return the keys for which the delivered rows speak most; None if no column and no pair of columns is a key.

    Args:
        rows: the delivered rows.
        columns: the facts of their columns.
        by_day: whether each day has a folder, so that the intervals can order the events of a key.
    """
    total, whole = rows.count(), [name for name, facts in columns.items() if not facts.nulls]
    times = sorted(
        (name for name in whole if columns[name].type == "timestamp"), key=lambda name: _rank(name, columns[name])
    )
    able = [name for name in whole if not columns[name].type.startswith(_NO_KEYS)]
    singles = sorted((name for name in able if columns[name].type not in TIMES), key=_is_unlike_a_key)
    unique = [name for name in singles if columns[name].distinct == total]
    others = f"; unique as well: {', '.join(unique[1:])}" if unique[1:] else ""
    by_itself = f"never null, and different in each of {counted(total, 'row')}{others}"
    if unique and not _is_unlike_a_key(unique[0]):
        return _keys((unique[0],), next(iter(times), ""), by_day, f"{unique[0]}: {by_itself}")
    for name in singles:
        for time in times:
            if not _is_unlike_a_key(name) and rows.distinct(name, time) == total:
                number = counted(columns[name].distinct, "value")
                text = (
                    f"{name}: never null, {number} in {counted(total, 'row')}; no two of its rows have the same {time}"
                )
                return _keys((name,), time, by_day, text)
    if unique:  # By chance, where few rows were delivered.
        return _keys((unique[0],), next(iter(times), ""), by_day, f"{unique[0]}: {by_itself}")
    per_file = [name for name in singles if columns[name].per_file == total]
    if per_file:
        text = f"{per_file[0]}: never null, and different in each row of a file, but not of all files"
        return _keys((per_file[0],), next(iter(times), ""), by_day, text)
    for pair in combinations(able[:_MOST_PAIRS], 2):
        if any(columns[name].type not in TIMES for name in pair) and rows.distinct(*pair) == total:
            text = f"{' and '.join(pair)}: never null, and together different in each of {counted(total, 'row')}"
            return _keys(pair, next((time for time in times if time not in pair), ""), by_day, text)
    return None


def silver_text(table: str, source: str, rows: DeliveredRows, *, by_day: bool) -> str:
    """Return the text of a spec of `table`; `lakehouse check` accepts it. It is empty if nothing can be a key."""
    columns, total = rows.columns(), rows.count()
    proposal = propose_keys(rows, columns, by_day=by_day) if total else None
    if proposal is None:
        return ""
    sequence, by_file = proposal.sequence_by, list[str]()
    if sequence == FILE_NAME:
        sequence = "delivered_in" if "delivered_in" not in columns else "delivered_in_file_of_this_name"
        by_file = [f"  {sequence}: {{type: string, nullable: false, from: {FILE_NAME}}}"]
    needed = (*proposal.keys, sequence)
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# proposed from {counted(total, 'delivered row')}: review the keys first; to change them later "
        "means a rebuild",
        f"table: {table}",
        "# decide: description, what one row is; owner, the team to ask",
        f"source: {source}",
        *(f"# {line}" for line in proposal.evidence),
        f"keys: {flow(list(proposal.keys))}",
        *([f"sequence_by: {flow([sequence])}"] if sequence else []),
        "# decide: apply_as_deletes, if some events delete their key; stored_as_scd_type: 2, to keep every state",
        "columns:",
        *(
            f"  {name}: {flow({'type': facts.type, **({'nullable': False} if name in needed else {})})}"
            for name, facts in columns.items()
        ),
        *by_file,
        *_expectations(rows, columns, needed, total),
    ]
    text = "\n".join(lines) + "\n"
    parse_spec(yaml.load(text, SpecLoader))
    return text


def _keys(keys: Sequence[str], time: str, by_day: bool, evidence: str) -> Keys:
    if time:
        order = f"{time}: never null; decide whether it says which of two events of a key is newer"
    elif by_day:
        order = "no sequence_by: no time is in every row, so the days of delivery order the events of a key"
    else:
        time = FILE_NAME
        order = "no time is in every row, so the names of the files order the events of a key: name a better column"
    return Keys(tuple(keys), time, (evidence, order))


def _rank(name: str, facts: ColumnFacts) -> tuple[int, int]:
    """Return the place of a time among those that may order events: the last change first, the first time last."""
    return (0 if _LAST_CHANGE.search(name) else 2 if _FIRST_TIME.search(name) else 1, -facts.distinct)


def _is_unlike_a_key(name: str) -> bool:
    return not _LIKE_A_KEY.search(name)


def _expectations(
    rows: DeliveredRows, columns: Mapping[str, ColumnFacts], needed: Sequence[str], total: int
) -> Iterator[str]:
    """Yield the lines of the expectations: rules that only warn, and bounds as comments for a person to decide."""
    yield "expectations:"
    yield from _rule("expect_table_row_count_to_be_between", {"min_value": 1}, "fail", "a table without rows")
    for name, facts in columns.items():
        if not facts.nulls and name not in needed:
            yield f"  # {name}: a value in each of {counted(total, 'delivered row')}"
            yield from _rule("expect_column_values_to_not_be_null", {"column": name}, "warn", "it always had a value")
        if facts.is_text and name not in needed and 0 < facts.distinct <= min(_MOST_VALUES, (total - facts.nulls) // 2):
            values = rows.values(name)
            delivered = ", ".join(f"{value!r} in {counted(number, 'row')}" for value, number in values)
            yield f"  # {name}: {delivered}"
            arguments = {"column": name, "value_set": [value for value, _ in values]}
            yield from _rule("expect_column_values_to_be_in_set", arguments, "warn", "no other value was delivered")
        if facts.least is not None and facts.greatest is not None and name not in needed:
            yield f"  # decide: {name} was from {facts.least} to {facts.greatest}. Refuse rows beyond bounds by"
            yield f"  # - expect_column_values_to_be_between: {{column: {name}, min_value: ..., max_value: ...}}"
            yield "  #   action: quarantine"


def _rule(name: str, arguments: Mapping[str, object], action: str, reason: str) -> Iterator[str]:
    yield f"  - {name}: {flow(arguments)}"
    yield f"    action: {action}"
    yield f"    reason: {reason}"

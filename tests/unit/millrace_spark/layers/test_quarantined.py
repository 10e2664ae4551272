"""The refused rows of one batch are found in the files of its commit, whatever was written before and after it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.findings import MAX_SAMPLES, RefusedRows
from millrace.control.log.batch import Winner
from millrace.errors import ConservationError
from millrace_spark.layers.quarantined import quarantined_by_reason, quarantined_of_files
from tests.support.ledger.delta_tables import clean_log, intent_of, optimize

COLUMNS = pa.schema(
    [
        ("source", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("row_id", pa.string()),
        ("_batch_token", pa.string()),
    ]
)
Refused = tuple[str, tuple[str, ...], str]
"""The source, the reasons and the id of a refused row."""

ROWS: list[Refused] = [
    ("a.json", ("not_null(day): no day", "between(n): Zürich"), "1"),
    ("a.json", ("between(n): Zürich",), "2"),
    ("b.json", ("between(n): Zürich",), "3"),
]


def refuse(quarantine: Path, number: int, rows: list[Refused]) -> Winner:
    """Return a batch that has put these rows into quarantine in one commit."""
    intent = intent_of("t", number)
    columns = [*map(list, zip(*rows, strict=True)), [intent.token] * len(rows)]
    table = pa.table([pa.array(values, field.type) for values, field in zip(columns, COLUMNS, strict=True)], COLUMNS)
    properties = CommitProperties(custom_metadata={"userMetadata": intent.user_metadata()})
    write_deltalake(str(quarantine), table, mode="append", commit_properties=properties)
    return Winner(intent, 40 + number)


def expected(rows: list[Refused]) -> Counter[str]:
    return Counter(reason for _, reasons, _ in rows for reason in reasons)


def found(quarantine: Path, winner: Winner, rows: int) -> tuple[dict[str, int], Counter[str]]:
    by_reason = {one.reason: one.rows for one in quarantined_by_reason(quarantine, winner, rows)}
    return by_reason, quarantined_of_files(quarantine, winner)


def test_each_reason_has_its_rows_and_samples_and_each_file_its_records(tmp_path: Path) -> None:
    refuse(tmp_path, 1, ROWS)
    winner = refuse(tmp_path, 2, [*ROWS, *(("c.json", ("many: x",), f"{number:02}") for number in range(20, 0, -1))])
    assert quarantined_by_reason(tmp_path, winner, 23) == (
        RefusedRows(
            reason="many: x", action="quarantine", rows=20, samples=tuple(f"{number:02}" for number in range(1, 6))
        ),
        RefusedRows(reason="between(n): Zürich", action="quarantine", rows=3, samples=("1", "2", "3")),
        RefusedRows(reason="not_null(day): no day", action="quarantine", rows=1, samples=("1",)),
    )
    assert MAX_SAMPLES == 5
    assert quarantined_of_files(tmp_path, winner) == {"a.json": 2, "b.json": 1, "c.json": 20}


@pytest.mark.parametrize("happens", ["nothing", "another batch", "OPTIMIZE", "a clean-up of the log"])
def test_a_batch_that_is_closed_late_finds_its_rows(tmp_path: Path, happens: str) -> None:
    refuse(tmp_path, 1, ROWS[:1])
    winner = refuse(tmp_path, 2, ROWS)
    if happens != "nothing":
        refuse(tmp_path, 3, ROWS[1:])
    if happens == "OPTIMIZE":
        optimize(tmp_path)
    if happens == "a clean-up of the log":
        clean_log(tmp_path, below=2)
    assert found(tmp_path, winner, 3) == (expected(ROWS), {"a.json": 2, "b.json": 1})


def test_a_quarantine_without_all_refused_rows_is_no_batch_to_certify(tmp_path: Path) -> None:
    winner = refuse(tmp_path, 1, ROWS)
    with pytest.raises(ConservationError, match="refused 4 rows; the quarantine has 3"):
        quarantined_by_reason(tmp_path, winner, 4)


TEXTS = st.text(max_size=3)
BATCHES = st.lists(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(tuple), TEXTS), min_size=1),
    min_size=1,
    max_size=3,
)


@settings(max_examples=10)
@given(BATCHES)
def test_any_texts_are_counted(tmp_path_factory: pytest.TempPathFactory, batches: list[list[Refused]]) -> None:
    quarantine = tmp_path_factory.mktemp("quarantine")
    winners = [refuse(quarantine, number, rows) for number, rows in enumerate(batches, start=1)]
    for winner, rows in zip(winners, batches, strict=True):
        by_reason, of_files = found(quarantine, winner, len(rows))
        assert sum(by_reason.values()) == sum(expected(rows).values())
        assert of_files == Counter(source for source, _, _ in rows)

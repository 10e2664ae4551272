"""The quarantined rows of a table: reasons, filters and statuses."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.control.quarantine.events import Decision, QuarantineEvents, ReceivedRow, RowEvent
from millrace.control.quarantine.rows import (
    count_by_status,
    count_old_rows,
    count_rows,
    newest_rows,
    quarantined_rows,
    refusals,
)
from millrace.control.quarantine.stored_rows import QuarantinedRow, RowState, StoredRows, row_states
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import day, intent_of
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS = "silver.orders"
TOO_LOW, NO_KEY = "expect_between(amount): no negative prices", "not_null(order_id)"
ANN = Decision("ann", "so", "a run")
DAY = timedelta(days=1)


@pytest.fixture
def orders(paths: LakehousePaths) -> str:
    """Three refused rows; gives the table's id."""
    return quarantine(paths, ORDERS, *(refused(number, TOO_LOW) for number in (1, 2, 3)))


def test_a_replay_tries_a_row_with_its_fix(paths: LakehousePaths, orders: str) -> None:
    fixed = ReceivedRow("r1", '{"order_id":"o1","amount":7}', "amount = 7")
    QuarantineEvents(paths).record_fixes(ORDERS, orders, [fixed], ANN)
    (row,) = quarantined_rows(StoredRows(ORDERS, paths), RowFilter(statuses=(RowStatus.FIXED,)))
    assert row.received_row == fixed


DECIDED = st.lists(
    st.tuples(st.sampled_from(["fixed", "discarded", "reopened", "refused again", "replayed"]), st.integers(0, 7)),
    min_size=1,
    max_size=6,
)
REFUSED = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from([(), (TOO_LOW,), (NO_KEY, TOO_LOW)]), st.sampled_from([None, "a", "é"])
    ),
    min_size=2,
    max_size=8,
)
FILTERS = st.builds(
    RowFilter,
    ids=st.sampled_from([(), ("r1",), ("r0", "r2", "r9")]),
    starts=st.sampled_from([(), (day(1).start,), (day(1).start, day(3).start)]),
    reason=st.sampled_from(["", "not_null", "price", "it's"]),
    statuses=st.sampled_from([PENDING, tuple(RowStatus), (RowStatus.REPLAYED,), (RowStatus.OPEN,)]),
)


def decide(paths: LakehousePaths, table_id: str, what: str, number: int, seq: int) -> None:
    events, row = QuarantineEvents(paths), ReceivedRow(f"r{number}", "{}", "x = 1")
    if what == "fixed":
        events.record_fixes(ORDERS, table_id, [row], ANN)
    elif what in ("discarded", "reopened"):
        events.record(RowEvent(what), ORDERS, table_id, [row.id], ANN)
    else:
        replay = f"replay {seq}"
        intent = intent_of(table_id, seq, stream=Stream(ORDERS), sources=BatchSources(replay=replay))
        events.pin(ORDERS, table_id, replay, [row], ANN)
        events.record_outcome(Winner(intent, seq), [(row.id, ["not_null(a): it's so"])] if "again" in what else [], ANN)


def parts_of(rows: StoredRows, wanted: RowFilter, most: int) -> tuple[list[list[QuarantinedRow]], int]:
    """Return the rows as pages show them, part by part, and their number."""
    parts = [newest_rows(rows, wanted, most)]
    while parts[-1]:
        parts.append(newest_rows(rows, wanted, most, parts[-1][-1].id))
    return parts[:-1] or parts, count_rows(rows, wanted)


@settings(max_examples=8)
@given(stored=REFUSED, decided=DECIDED, wanted=FILTERS, most=st.integers(1, 4))
def test_queries_that_read_only_a_part_give_the_same_answer_as_all_rows(
    stored: list[tuple[int, tuple[str, ...], str | None]],
    decided: list[tuple[str, int]],
    wanted: RowFilter,
    most: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    paths = LakehousePaths(tmp_path_factory.mktemp("lake"))
    rows = [refused(at, *why, of_day=of, source=source) for at, (of, why, source) in enumerate(stored)]
    table_id = quarantine(paths, ORDERS, *rows)
    for seq, (what, number) in enumerate(decided):
        decide(paths, table_id, what, number, seq)
    every = quarantined_rows(StoredRows(ORDERS, paths), RowFilter(statuses=tuple(RowStatus)))
    chosen = quarantined_rows(StoredRows(ORDERS, paths), wanted)
    parts, count = parts_of(StoredRows(ORDERS, paths), wanted, most)
    counted, old = count_by_status(StoredRows(ORDERS, paths)), count_old_rows(StoredRows(ORDERS, paths), day(3).end)
    found = refusals(StoredRows(ORDERS, paths), wanted.statuses)
    known = row_states(QuarantineEvents(paths).events_of(ORDERS, table_id))
    states = {row["row_id"]: known.get(row["row_id"], RowState()) for row in rows}
    assert {row.id: row.status for row in every} == {row_id: state.status for row_id, state in states.items()}
    first_reasons = {row["row_id"]: tuple(row["reasons"]) for row in rows}
    for row in every:
        reasons_now = states[row.id].reasons
        assert row.reasons == (first_reasons[row.id] if reasons_now is None else reasons_now)
    assert [(-row.batch_seq, row.source, row.id) for row in every] == sorted(
        (-row["_batch_seq"], row["source"] or "", row["row_id"]) for row in rows
    )
    assert counted == Counter(state.status for state in states.values())
    assert chosen == [
        row
        for row in every
        if row.status in wanted.statuses
        and (not wanted.ids or row.id in wanted.ids)
        and (not wanted.starts or row.interval_start in wanted.starts)
        and any(wanted.reason in reason for reason in row.reasons or ([] if wanted.reason else [""]))
    ]
    assert [len(part) for part in parts[:-1]] == [most] * (len(parts) - 1)
    assert ([row for part in parts for row in part], count) == (chosen, len(chosen))
    meant = [row for row in every if row.status in wanted.statuses]
    reasons = Counter((reason, row.status) for row in meant for reason in row.reasons)
    assert {(refusal.reason, refusal.status): refusal.rows for refusal in found} == reasons
    for one in found:
        alike = [row for row in meant if row.status == one.status and one.reason in row.reasons]
        assert one.first_seen == min(row.first_seen for row in alike)
        assert (one.first, one.last) == (
            min(row.interval_start for row in alike),
            max(row.interval_start for row in alike),
        )
        assert one.batch_seq == max(row.batch_seq for row in alike)
    waiting = [row.first_seen for row in every if row.status in PENDING and row.first_seen < day(3).end]
    assert old == (len(waiting), min(waiting, default=None))


def test_rows_and_decisions_of_an_earlier_table_with_the_same_name_do_not_count(
    paths: LakehousePaths, orders: str
) -> None:
    earlier = "the id of an earlier table"
    assert orders != earlier
    QuarantineEvents(paths).record(RowEvent.DISCARDED, ORDERS, earlier, ["r1"], ANN)
    quarantine(paths, ORDERS, refused(9, TOO_LOW), table_id=earlier)
    assert count_by_status(StoredRows(ORDERS, paths)) == {RowStatus.OPEN: 3}
    shutil.rmtree(paths.table(ORDERS))
    assert quarantined_rows(StoredRows(ORDERS, paths), RowFilter()) == []

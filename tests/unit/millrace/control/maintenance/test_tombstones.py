"""The deleted keys that may be removed: only the time at which their batch was closed decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import write_deltalake

from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import ONE_STREAM, Stream, Winner
from millrace.control.maintenance.tombstones import OldTombstones, old_tombstones
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_spec, silver_spec
from tests.support.ledger.delta_tables import FLIGHTS, commit, file_contents, intent_of, load_batch

RETAIN = "400 days"
SPEC = silver_spec(apply_as_deletes="amount = 0", maintenance={"tombstones": {"retain": RETAIN}})
SOON, LATER = timedelta(days=399), timedelta(days=401)
TOMBSTONES = pa.schema([("order_id", pa.string()), ("_stream", pa.string()), ("_batch_seq", pa.int64())])


def bury(paths: LakehousePaths, batch_seq: int, *keys: str | None, stream: str = ONE_STREAM) -> None:
    rows = [{"order_id": key, "_stream": stream, "_batch_seq": batch_seq} for key in keys]
    path = paths.tombstones(SPEC.table, table_id(paths.table(SPEC.table)))
    write_deltalake(str(path), pa.Table.from_pylist(rows, schema=TOMBSTONES), mode="append")


def old(paths: LakehousePaths, now: datetime, spec: SilverSpec = SPEC) -> OldTombstones:
    before = file_contents(paths.root)
    found = old_tombstones(spec, paths, Ledger(paths), now)
    assert file_contents(paths.root) == before
    return found


def test_tombstones_are_old_when_their_batch_was_closed_before_the_retention(paths: LakehousePaths) -> None:
    load_batch(paths.root, SPEC)
    bury(paths, 1, "a", "b")
    between = datetime.now(UTC)
    load_batch(paths.root, SPEC)
    bury(paths, 2, "c")
    now = datetime.now(UTC)
    assert old(paths, now + SOON) == OldTombstones(RETAIN)
    assert old(paths, between + timedelta(days=400)) == OldTombstones(RETAIN, keys=2, upto=1)
    assert old(paths, now + LATER) == OldTombstones(RETAIN, keys=3, upto=2)
    assert old(paths, now + LATER).may_go


def test_the_tombstone_of_a_truncate_or_of_a_source_that_had_a_stream_is_never_old(paths: LakehousePaths) -> None:
    """The number of the latter says nothing about the time: it is not one of the stream that the table has now."""
    for _ in range(2):
        load_batch(paths.root, SPEC)
    bury(paths, 1, None)
    bury(paths, 1, "a", stream="bronze.orders")
    found = old(paths, datetime.now(UTC) + LATER)
    assert (found.keys, found.upto, found.may_go) == (0, 2, False)
    bury(paths, 2, "b")
    assert old(paths, datetime.now(UTC) + LATER) == OldTombstones(RETAIN, keys=1, upto=2)


def test_no_tombstone_may_go_while_the_last_batch_is_not_closed(paths: LakehousePaths) -> None:
    load_batch(paths.root, SPEC)
    bury(paths, 1, "a")
    winner = load_batch(paths.root, SPEC, closed=False)
    found = old(paths, datetime.now(UTC) + LATER)
    assert (found, found.may_go) == (OldTombstones(RETAIN, keys=1, upto=1, unclosed=2), False)
    Ledger(paths).record_closed(winner, RowCounts())
    assert old(paths, datetime.now(UTC) + LATER).may_go


def test_a_batch_that_is_only_in_the_log_is_not_closed(paths: LakehousePaths) -> None:
    """Its driver died between its commit and the ledger."""
    first = load_batch(paths.root, SPEC)
    bury(paths, 1, "a")
    commit(paths.table(SPEC.table), intent_of(first.intent.table_id, 2, stream=Stream(SPEC.table)))
    assert old(paths, datetime.now(UTC) + LATER) == OldTombstones(RETAIN, keys=1, upto=1, unclosed=2)


def test_a_table_without_tombstones_or_that_keeps_them_for_ever_has_no_old_ones(paths: LakehousePaths) -> None:
    now = datetime.now(UTC) + LATER
    assert old(paths, now) == OldTombstones(RETAIN)
    load_batch(paths.root, SPEC)
    assert old(paths, now) == OldTombstones(RETAIN), "nothing was deleted yet"
    bury(paths, 1, "a")
    assert old(paths, now).keys == 1
    for spec in (silver_spec(apply_as_deletes="amount = 0"), bronze_spec(), gold_spec()):
        assert old_tombstones(spec, paths, Ledger(paths), now) == OldTombstones()


def test_the_last_batch_closed_before_an_instant_precedes_all_batches_closed_later(ledger: Ledger) -> None:
    closings, instants = (3, 1, 2, 2, 4), [datetime.now(UTC)]
    for batch_seq in closings:
        ledger.record_closed(Winner(intent_of("id", batch_seq), batch_seq), RowCounts())
        instants.append(datetime.now(UTC))
    for done, instant in enumerate(instants):
        sound = [seq for seq in closings[:done] if not any(later <= seq for later in closings[done:])]
        assert ledger.history.closed_before(FLIGHTS.table, "id", FLIGHTS.name, instant) == max(sound, default=0)
    for other in (("silver.other", "id", "main"), (FLIGHTS.table, "re-created", "main"), (FLIGHTS.table, "id", "b")):
        assert ledger.history.closed_before(*other, instants[-1]) == 0

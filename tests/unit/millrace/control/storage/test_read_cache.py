"""The cache of what a job has read from a bucket, and when the job reads again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.lake_path import S3Path
from millrace.control.leases.leases import Leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.spec_history import SpecHistory
from millrace.control.ledger.states.measures import measure
from millrace.control.ledger.states.streams import Streams
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.log.batch import FileFact, Stream, Winner
from millrace.control.log.delta_log import commit_mark, commit_versions
from millrace.control.storage.objects_on_s3 import S3ObjectStore
from millrace.control.storage.read_cache import cached_reads, clear_read_cache, uncached_reads
from millrace.control.storage.stored_files import delete_files, names_in
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.event_race import EVENTS, event
from tests.support.storage.faulty_s3 import FaultyS3

TABLE = S3Path("s3://lake/read_cache/silver/orders")
LOG = TABLE / "_delta_log"


@pytest.fixture
def bucket(proxied_bucket: Bucket) -> Bucket:
    """Return a bucket with a log of two commits; our own requests go through the proxy, which counts them."""
    for version in range(5):
        proxied_bucket.client.delete_object(Bucket="lake", Key=f"{LOG.key}/{version:020d}.json")
    for version in range(2):
        commit(proxied_bucket, version)
    return proxied_bucket


def commit(bucket: Bucket, version: int, said: str = "") -> None:
    bucket.put(f"{LOG.key}/{version:020d}.json", f'{{"commitInfo":{{"operation":"{said}"}}}}')


def seen() -> list[int]:
    return commit_versions(TABLE)


def test_a_job_reads_once_until_the_cache_is_cleared(bucket: Bucket, faulty: FaultyS3) -> None:
    assert seen() == [0, 1]
    commit(bucket, 2)
    assert seen() == [0, 1, 2], "nothing is cached outside of a job"
    with cached_reads():
        before = faulty.requests_forwarded()
        marks = {commit_mark(TABLE, 1) for _ in range(3)}
        assert (seen(), len(marks)) == ([0, 1, 2], 1)
        assert faulty.requests_forwarded() - before == 2, "the names, and one commit"
        commit(bucket, 3)
        assert seen() == [0, 1, 2]
        with ThreadPoolExecutor(1) as other:
            assert other.submit(seen).result() == [0, 1, 2, 3], "another thread has seen nothing yet"
        clear_read_cache()
        assert seen() == [0, 1, 2, 3]
        before = faulty.requests_forwarded()
        assert commit_mark(TABLE, 1) in marks
        assert faulty.requests_forwarded() == before, "the listing has told that the commit is the same"
        commit(bucket, 1, "of another table")
        assert commit_mark(TABLE, 1) in marks
        clear_read_cache()
        assert commit_mark(TABLE, 1) not in {"", *marks}
        with uncached_reads():
            commit(bucket, 4)
            assert seen() == [0, 1, 2, 3, 4]
        assert seen() == [0, 1, 2, 3, 4]


def test_a_job_sees_its_own_puts_and_deletes_and_puts_that_won_against_it(bucket: Bucket, faulty: FaultyS3) -> None:
    store = S3ObjectStore(LOG)
    with cached_reads():
        assert seen() == [0, 1]
        assert store.put_if_absent(f"{2:020d}.json", b'{"commitInfo":{}}')
        assert seen() == [0, 1, 2]
        commit(bucket, 3)
        assert not store.put_if_absent(f"{3:020d}.json", b'{"commitInfo":{"mine":1}}')
        assert seen() == [0, 1, 2, 3]
        assert len(list(names_in(LOG, f"{2:020d}"))) == 2
        before = faulty.requests_forwarded()
        delete_files(LOG, [])
        assert (seen(), faulty.requests_forwarded()) == ([0, 1, 2, 3], before)
        delete_files(LOG, [f"{0:020d}.json"])
        assert seen() == [1, 2, 3]


def test_a_cached_state_does_not_replace_the_state_of_another_writer(bucket: Bucket) -> None:
    paths = LakehousePaths(S3Path("s3://lake/cached_states"))
    mine, theirs = TableStates(paths), TableStates(paths)

    def named(name: str) -> tuple[type[Streams], object]:
        return Streams, lambda kept: Streams(table_id=f"{kept.table_id if kept else ''}{name}")

    with cached_reads():
        assert mine.read("silver.orders", Streams) is None
        mine.change("silver.orders", named("a"))  # type: ignore[arg-type]
        with ThreadPoolExecutor(1) as other:
            other.submit(theirs.change, "silver.orders", named("b")).result()
        mine.change("silver.orders", named("c"))  # type: ignore[arg-type]
        mine.change("silver.orders", named("d"))  # type: ignore[arg-type]
    assert theirs.read("silver.orders", Streams) == Streams(table_id="abcd")


def test_a_writer_knows_the_end_of_the_log_until_the_cache_is_cleared(bucket: Bucket, faulty: FaultyS3) -> None:
    mine, theirs = (OpsTable(S3Path(f"s3://{bucket.name}/tables/ops/events"), EVENTS) for _ in range(2))

    def words() -> list[str]:
        return [found["word"] for found in mine.events("silver.orders")]

    mine.append([event("silver.orders", "a")])
    assert words() == ["a"]
    with cached_reads():
        mine.append([event("silver.orders", "b")])
        before = faulty.requests_forwarded()
        assert words() == ["a", "b"]
        assert faulty.requests_forwarded() == before
        with ThreadPoolExecutor(1) as other:
            other.submit(theirs.append, [event("silver.orders", "c")]).result()
        mine.append([event("silver.orders", "d")])
        assert words() == ["a", "b", "c", "d"], "the place after b was taken"
        with ThreadPoolExecutor(1) as other:
            other.submit(theirs.append, [event("silver.orders", "e")]).result()
        clear_read_cache()
        assert words() == ["a", "b", "c", "d", "e"]


def test_a_process_does_not_read_the_commits_that_it_has_put(bucket: Bucket, faulty: FaultyS3) -> None:
    def opened() -> OpsTable:
        return OpsTable(S3Path(f"s3://{bucket.name}/tables/ops/own_commits"), EVENTS)

    first = opened()
    first.append([event("silver.orders", "a")])
    with cached_reads():
        assert [found["word"] for found in opened().events("silver.orders")] == ["a"], "it has read version 0"
    first.append([event("silver.orders", "b")])
    with cached_reads():
        before = faulty.requests_forwarded()
        assert opened().compact("silver.orders") is False
        assert faulty.requests_forwarded() - before == 1, "the listing"


def test_after_a_write_by_spark_the_ledger_reads_nothing_that_this_process_has_recorded(
    bucket: Bucket, faulty: FaultyS3
) -> None:
    paths = LakehousePaths(S3Path(f"s3://{bucket.name}/recorded"))
    ledger, file = Ledger(paths), FileFact(path="orders/1.json", size=1, mtime_ns=1, checksum="sha256:1")
    for number in (1, 2):
        winner = Winner(intent_of("id", number, stream=Stream("bronze.orders")), number)
        with cached_reads():
            ledger.last_committed("bronze.orders", "id", "main")
            ledger.record_intent(winner.intent, (file,))
            clear_read_cache()  # as after the session in which Spark writes
            before = faulty.requests_forwarded()
            ledger.record_committed([winner])
            ledger.record_closed(winner, RowCounts(read=1, applied=1), {file.path: FileRows(read=1, written=1)})
            requests = faulty.requests_forwarded() - before
    before = faulty.requests_forwarded()
    assert measure(paths.table("bronze.orders")) is None
    assert requests - (faulty.requests_forwarded() - before) == 8, "two puts for each of three events, and the state"


def test_a_free_lease_takes_one_put_and_one_delete(bucket: Bucket, faulty: FaultyS3) -> None:
    store = S3ObjectStore(S3Path(f"s3://{bucket.name}/leases"))
    before = faulty.requests_forwarded()
    with Leases(store, "run one").stream("silver.orders", "main"):
        held = store.keys("")
    assert held == ["silver.orders.stream-main"]
    assert faulty.requests_forwarded() - before == 4, "also a listing of queue and leases, and the keys for this test"
    assert store.keys("") == []


def test_a_recorded_spec_is_not_read_again(bucket: Bucket, faulty: FaultyS3) -> None:
    specs, spec = SpecHistory(LakehousePaths(S3Path(f"s3://{bucket.name}/lakehouse"))), silver_spec()
    specs.record(spec, "id")
    assert specs.is_latest(spec, "id", spec.spec_hash)
    before = faulty.requests_forwarded()
    assert specs.is_latest(spec, "id", spec.spec_hash)
    specs.record(spec, "id")
    assert faulty.requests_forwarded() == before
    assert not specs.is_latest(silver_spec(description="another"), "id", spec.spec_hash)
    assert faulty.requests_forwarded() > before, "a change is looked for"

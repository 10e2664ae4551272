"""Bronze from a real Kafka broker: every message once, whatever the topic, the driver or the sender goes through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.report import JobReport
from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.bronze_sources import EPOCH, MESSAGE_ORIGIN
from millrace.control.changes.table_diff import table_diff
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import read_commit
from millrace.control.ops_tables import OpsTables
from millrace.errors import Outcome
from millrace_spark.layers.bronze.bronze import BronzeIngest
from tests.support.documents.specs import silver_document
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

ORDERS, SILVER = "bronze.orders", "silver.orders"


def placed(shop: Lakehouse) -> list[tuple[Any, ...]]:
    return shop.rows(ORDERS, "order_id", "_partition", "_offset")


def test_each_message_is_loaded_once_a_replayed_one_keeps_its_place_and_the_next_batch_starts_behind_the_last(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    def state(**source: Any) -> None:
        shop.specs({**topic_document(topic, starting_offsets="latest", **source), "expectations": [AT_LEAST_0]})

    state()
    topic.send(order(0, 1))
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED, "the start is pinned by a batch, even an empty one"

    topic.grow(2)
    topic.send(order(1, 5), order(2, -7), "{broken")
    topic.send(order(4, 1), partition=1)
    first = shop.run(ORDERS)
    assert (first.rows.read, first.rows.applied, first.rows.quarantined) == (4, 2, 2)
    waiting = shop.waiting(ORDERS)
    (broken,) = (row for row in waiting if row.record == "{broken")
    assert (broken.source, broken.position) == (f"{topic.name}/0", 3)
    records = {row.id: {"order_id": "o3", "amount": 1} if row == broken else {"amount": 7} for row in waiting}
    stated = "\n".join(json.dumps({"id": row, "record": record}) for row, record in records.items())
    replay = shop.replay(ORDERS, edited=stated, rows={"ids": [*records]})
    assert replay.rows.applied == 2, replay.message
    assert [row.attempts for row in shop.waiting(ORDERS, RowStatus.REPLAYED)] == [1, 1]
    again = shop.run(ORDERS)
    assert (again.outcome, again.version) == (Outcome.NO_OP, replay.version)

    topic.send(order(5, 9))
    state(min_bytes_per_file="1 MB", allowed_latency="1 hours", max_messages_per_batch=1)
    waits = shop.run(ORDERS, 2)
    expected = ("1 message waits for more (min_bytes_per_file, allowed_latency)",)
    assert (waits.outcome, waits.notes) == (Outcome.NO_OP, expected)
    state(min_bytes_per_file="1 MB", allowed_latency="0 seconds")
    later = shop.run(ORDERS, 2)
    assert (later.rows.read, later.table_rows, later.certified_version) == (1, 5, later.version)
    assert placed(shop) == [("o1", 0, 1), ("o2", 0, 2), ("o3", 0, 3), ("o4", 1, 0), ("o5", 0, 4)]
    times = [at for _, at in shop.rows(ORDERS, "_offset", "_timestamp")]
    assert None not in times
    commit = read_commit(shop.paths.table(ORDERS), later.version or 0)
    assert commit is not None
    assert commit.metadata["sources"]["offsets"] == {topic.name: {"0": [4, 5], "1": [1, 1]}}
    assert later.details["offsets"] == {f"{topic.name}/0": 5, f"{topic.name}/1": 1}
    assert topic.group_offsets("millrace.bronze.orders") == {0: 5, 1: 1}


def test_messages_before_the_start_and_those_of_aborted_transactions_are_no_loss_even_to_a_run_that_was_overtaken(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs(topic_document(topic, starting_offsets="2013-01-02T00:00:00Z"))
    topic.send(order(0, 1), timestamp=1356998400000)
    at_start = 1357084800000
    topic.send(order(1, 1), timestamp=at_start, transaction="commit")
    ensure = BronzeIngest.ensure_table

    def overtaken(ingest: BronzeIngest) -> None:
        monkeypatch.setattr(BronzeIngest, "ensure_table", ensure)
        topic.send(order(2, 1), timestamp=at_start, transaction="abort")
        topic.send(order(3, 1), timestamp=at_start, transaction="commit")
        assert shop.run(ORDERS).rows.read == 2
        ensure(ingest)

    monkeypatch.setattr(BronzeIngest, "ensure_table", overtaken)
    report = shop.run(ORDERS)
    assert (report.outcome, report.notes) == (Outcome.NO_OP, ())
    assert [row[0] for row in placed(shop)] == ["o1", "o3"]


@pytest.mark.slow
def test_lost_messages_fail_the_run_unless_the_spec_accepts_them_and_a_topic_created_again_is_another_one(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 1))
    shop.run(ORDERS)
    topic.send(order(2, 1), order(3, 1), order(4, 1))
    topic.expire(0, before=3)

    refused = shop.run(ORDERS)
    assert (refused.outcome, refused.error_class) == (Outcome.BAD_INPUT, "BadInputError")
    assert f"{topic.name}/0: the brokers deleted offsets 1 to 2 before they were read" in refused.message
    accepted = [accepted_loss(refused)]
    shop.specs(topic_document(topic, accepted_losses=accepted))
    report = shop.run(ORDERS)
    assert [note for note in report.notes if note.startswith("lost: ")]
    assert placed(shop) == [("o1", 0, 0), ("o4", 0, 3)]
    assert shop.run(ORDERS).notes == (), "a loss is told once"

    topic.delete()
    topic.create()
    topic.send(order(5, 1), order(6, 1))
    refused = shop.run(ORDERS)
    assert f"{topic.name}: it was deleted and created again" in refused.message
    shop.specs(topic_document(topic, accepted_losses=[*accepted, accepted_loss(refused)]))
    shop.run(ORDERS)
    assert placed(shop) == [("o1", 0, 0), ("o4", 0, 3), ("o5", 0, 0), ("o6", 0, 1)]


def accepted_loss(refused: JobReport) -> str:
    """Return the loss as the error of a run says that the spec accepts it."""
    return refused.message.rpartition("accepted_losses: [")[2].removesuffix("]")


def test_a_topic_that_leaves_the_spec_and_comes_back_is_read_on_and_was_no_loss(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    more = KafkaTopic(topic.address, f"{topic.name}.more")
    more.create()
    both, without = (topic_document(topic, topics=topics) for topics in ([topic.name, more.name], [topic.name]))
    topic.send(order(1, 1))
    more.send(order(2, 1))
    shop.specs(both)
    assert shop.run(ORDERS).rows.read == 2
    topic.send(order(3, 1))
    more.send(order(4, 1))
    shop.specs(without)
    report = shop.run(ORDERS)
    assert (report.rows.read, report.notes) == (1, ()), report.message
    assert more.group_offsets("millrace.bronze.orders") == {0: 1}
    shop.specs(both)
    assert shop.run(ORDERS).rows.read == 1
    assert [row[0] for row in placed(shop)] == ["o1", "o2", "o3", "o4"]


def test_a_batch_whose_driver_died_is_closed_without_the_messages_that_retention_took_since_and_says_how_many(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs({**topic_document(topic), "expectations": [AT_LEAST_0]})
    topic.send(order(0, 1), "{broken", order(2, -7), order(3, -8), order(4, 1))
    with monkeypatch.context() as dying:
        dying.setattr(BronzeIngest, "close", lambda *_: pytest.fail("the driver dies"))
        with pytest.raises(pytest.fail.Exception):
            shop.run(ORDERS)
    topic.expire(0, before=3)
    topic.send(order(5, 1))
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    [note] = report.notes
    assert note.startswith("up to 2 messages that were refused are in no quarantine"), note
    assert f"{topic.name}/0 offsets 0 to 2" in note
    assert [row.position for row in shop.waiting(ORDERS)] == [3]
    assert [row[0] for row in placed(shop)] == ["o0", "o4", "o5"]
    assert report.certified_version == report.version
    assert shop.run(ORDERS).notes == ()


def test_the_newest_event_of_a_key_wins_though_its_topic_was_made_again_and_got_partitions(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {
        "order_id": {"nullable": False},
        "amount": {},
        "epoch": {"type": "int", "from": "coalesce(_epoch, 0)"},
        "sent": {"type": "bigint", "from": "_offset"},
    }
    by_epoch = silver_document(keys=["order_id"], sequence_by=["epoch", "sent"], columns=columns)
    by_offset = {**by_epoch, "table": "silver.by_offset", "sequence_by": ["sent"]}
    shop.specs(topic_document(topic), by_epoch, by_offset)
    topic.send(order(1, 1), order(1, 2))
    with monkeypatch.context() as earlier:
        earlier.delitem(MESSAGE_ORIGIN, EPOCH)
        assert shop.run(ORDERS).notes == ()
    spec, ops = load_catalog(shop.folder / "tables").spec(ORDERS), OpsTables(shop.paths)
    planned = table_diff(spec, ops.ledger.last_committed(ORDERS, table_id(shop.paths.table(ORDERS)), "main"), ops)
    assert [change.key for change in planned.changes] == ["columns._epoch"]

    topic.delete()
    topic.create()
    topic.send(order(1, 3))
    shop.specs(topic_document(topic, accepted_losses=[accepted_loss(shop.run(ORDERS))]))
    report = shop.run(ORDERS)
    [lost] = [note for note in report.notes if "later epoch" in note]
    assert lost.startswith(f"{topic.name}: 1 message of a later epoch")
    assert "older ones in silver.by_offset:" in lost

    topic.grow(2)
    topic.send(order(1, 4), partition=1)
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED
    assert shop.rows(ORDERS, "_epoch", "_offset", "amount") == [(1, 0, 3), (2, 0, 4), (None, 0, 1), (None, 1, 2)]
    assert shop.run(SILVER).outcome is Outcome.COMMITTED
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", "4")]


def test_an_unreachable_broker_is_tried_again_and_is_named(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs(topic_document(topic))
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"bootstrap.servers": "127.0.0.1:1"}}')
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.NOT_READY
    assert report.message.startswith("The Kafka cluster main at 127.0.0.1:1 does not answer")
    assert not shop.paths.table(ORDERS).exists()

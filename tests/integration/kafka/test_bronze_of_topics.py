"""Bronze from a real Kafka broker: every message once, whatever the topic, the driver or the sender goes through."""

from __future__ import annotations

from typing import Any

import pytest

from include.control.log.delta_log import read_commit
from include.errors import Outcome
from spark_jobs.layers.bronze.bronze import BronzeIngest
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def placed(shop: Lakehouse) -> list[tuple[Any, ...]]:
    return shop.rows(ORDERS, "order_id", "_partition", "_offset")


def test_every_message_is_loaded_once_few_wait_for_more_and_the_commit_says_where_the_next_batch_starts(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 5), order(2, 7))
    first, again = shop.run(ORDERS), shop.run(ORDERS)
    topic.send(order(3, 9))
    shop.specs(topic_document(topic, min_bytes_per_file="1 MB", allowed_latency="1 hours", max_messages_per_batch=1))
    waiting = shop.run(ORDERS, 2)
    shop.specs(topic_document(topic, min_bytes_per_file="1 MB", allowed_latency="0 seconds"))
    later = shop.run(ORDERS, 2)

    assert (first.outcome, first.rows.read, first.rows.applied) == (Outcome.COMMITTED, 2, 2)
    assert (again.outcome, again.version) == (Outcome.NO_OP, first.version)
    expected = ("1 message waits for more (min_bytes_per_file, allowed_latency)",)
    assert (waiting.outcome, waiting.notes) == (Outcome.NO_OP, expected)
    assert (later.rows.read, later.table_rows, later.certified_version) == (1, 3, later.version)
    assert placed(shop) == [("o1", 0, 0), ("o2", 0, 1), ("o3", 0, 2)]
    commit = read_commit(shop.paths.table(ORDERS), later.version or 0)
    assert commit is not None
    assert commit.metadata["sources"]["offsets"] == {topic.name: {"0": [2, 3]}}
    assert later.details["offsets"] == {f"{topic.name}/0": 3}
    assert topic.group_offsets("millrace.bronze.orders") == {0: 3}


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


def test_a_partition_that_is_added_is_read_from_its_start(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic, starting_offsets="latest"))
    topic.send(order(1, 1))
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED, "the start is pinned by a batch, even an empty one"
    topic.grow(2)
    topic.send(order(2, 1))
    topic.send(order(3, 1), partition=1)
    assert shop.run(ORDERS).rows.read == 2
    assert placed(shop) == [("o2", 0, 1), ("o3", 1, 0)]


@pytest.mark.slow
def test_lost_messages_fail_the_run_unless_the_spec_goes_on_without_them_and_a_topic_created_again_is_another_one(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    strict, lenient = topic_document(topic), topic_document(topic, fail_on_data_loss=False)
    shop.specs(strict)
    topic.send(order(1, 1))
    shop.run(ORDERS)
    topic.send(order(2, 1), order(3, 1), order(4, 1))
    topic.expire(0, before=3)

    refused = shop.run(ORDERS)
    assert (refused.outcome, refused.error_class) == (Outcome.BAD_INPUT, "BadInputError")
    assert f"{topic.name}/0: the brokers deleted offsets 1 to 2 before they were read" in refused.message
    assert "fail_on_data_loss: false" in refused.message.splitlines()[-1]
    shop.specs(lenient)
    report = shop.run(ORDERS)
    assert [note for note in report.notes if note.startswith("lost: ")]
    assert placed(shop) == [("o1", 0, 0), ("o4", 0, 3)]
    assert shop.run(ORDERS).notes == (), "a loss is told once"

    topic.delete()
    topic.create()
    topic.send(order(5, 1), order(6, 1))
    shop.specs(strict)
    assert f"{topic.name}: it was deleted and created again" in shop.run(ORDERS).message
    shop.specs(lenient)
    shop.run(ORDERS)
    assert placed(shop) == [("o1", 0, 0), ("o4", 0, 3), ("o5", 0, 0), ("o6", 0, 1)]


def test_an_unreachable_broker_is_tried_again_and_is_named(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs(topic_document(topic))
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"bootstrap.servers": "127.0.0.1:1"}}')
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.NOT_READY
    assert report.message.startswith("The Kafka cluster main at 127.0.0.1:1 does not answer")
    assert not shop.paths.table(ORDERS).exists()

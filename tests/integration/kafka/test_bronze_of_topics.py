"""Bronze from a real Kafka broker: every message once, whatever the topic, the driver or the sender goes through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deltalake import DeltaTable

from include.control.log.batch import Winner
from include.control.log.delta_log import read_commit
from include.errors import Outcome
from spark_jobs.layers.bronze.bronze import BronzeIngest
from spark_jobs.protocol.batches import Closing
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


class Died(BaseException):
    """The driver ended here."""


def placed(shop: Lakehouse) -> list[tuple[Any, ...]]:
    return shop.rows(ORDERS, "order_id", "_partition", "_offset")


def test_every_message_is_loaded_once_and_the_commit_says_where_the_next_batch_starts(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 5), order(2, 7))
    first, again = shop.run(ORDERS), shop.run(ORDERS)
    topic.send(order(3, 9))
    later = shop.run(ORDERS, 2)

    assert (first.outcome, first.rows.read, first.rows.applied) == (Outcome.COMMITTED, 2, 2)
    assert (again.outcome, again.version) == (Outcome.NO_OP, first.version)
    assert (later.rows.read, later.table_rows, later.certified_version) == (1, 3, later.version)
    assert placed(shop) == [("o1", 0, 0), ("o2", 0, 1), ("o3", 0, 2)]
    commit = read_commit(shop.paths.table(ORDERS), later.version or 0)
    assert commit is not None
    assert commit.metadata["sources"]["offsets"] == {topic.name: {"0": [2, 3]}}
    assert later.details["offsets"] == {f"{topic.name}/0": 3}
    assert topic.group_offsets("millrace.bronze.orders") == {0: 3}


def test_a_message_keeps_its_key_headers_and_time_and_transforms_fill_columns(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    columns = {"amount": {"type": "int"}, "customer": {"type": "string"}, "sent_on": {"type": "date"}}
    transforms = {"customer": "cast(key as string)", "sent_on": "to_date(timestamp)"}
    shop.specs(topic_document(topic, columns, transforms=transforms, headers=True))
    topic.send({"amount": 5, "extra": "x"}, key="c1", headers={"trace": b"t1"}, timestamp=1357000000000)

    shop.run(ORDERS)

    (row,) = DeltaTable(str(shop.paths.table(ORDERS))).to_pyarrow_table().to_pylist()
    assert (row["amount"], row["customer"], str(row["sent_on"])) == (5, "c1", "2013-01-01")
    assert (row["_key"], row["_topic"], row["_null_message"]) == (b"c1", topic.name, False)
    assert row["_headers"] == [{"key": "trace", "value": b"t1"}]
    assert row["_timestamp"].isoformat() == "2013-01-01T00:26:40+00:00"
    assert json.loads(row["_rescued"]) == {"extra": "x"}


def test_what_cannot_be_parsed_is_quarantined_with_its_place_and_null_messages_are_kept(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    columns = {**bronze_document()["columns"], "order_id": {"type": "string", "nullable": False}}
    shop.specs(topic_document(topic, columns))
    topic.send(order(1, 5), '{"order_id": "o2", ', b"\xff\xfe", "", order(None, 3))
    topic.send(None, key="o1")

    report = shop.run(ORDERS)

    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (6, 2, 4)
    assert shop.rows(ORDERS, "order_id", "_offset", "_null_message") == [("o1", 0, False), (None, 5, True)]
    refused = {row["position"]: (row["record"], row["reasons"][0]) for row in shop.quarantine(ORDERS)}
    assert {row["source"] for row in shop.quarantine(ORDERS)} == {f"{topic.name}/0"}
    assert refused[1] == ('{"order_id": "o2", ', "malformed record: it cannot be parsed as json")
    assert refused[2][0] == "no text, in base64: //4="
    assert refused[3][0] == ""
    assert "order_id" in refused[4][1]
    assert sorted(refused) == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_null_message_deletes_its_key_in_silver_and_a_refused_row_is_found_by_its_offset(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    bronze = {"id": {"type": "string"}, "amount": {"type": "string"}}
    silver = {
        "id": {"type": "string", "nullable": False},
        "amount": {"type": "int"},
        "at": {"type": "bigint", "from": "_offset"},
    }
    shop.specs(
        topic_document(topic, bronze, transforms={"id": "cast(key as string)"}),
        silver_document(keys=["id"], sequence_by=["at"], columns=silver, apply_as_deletes="_null_message"),
    )
    for key, value in (("a", {"amount": "1"}), ("b", {"amount": "2"}), ("c", {"amount": "many"}), ("a", None)):
        topic.send(value, key=key)

    shop.run_all(1, ORDERS, "silver.orders")

    assert shop.rows("silver.orders", "id", "amount") == [("b", 2)]
    (refused,) = shop.quarantine("silver.orders")
    assert (refused["source"], refused["position"]) == (f"{topic.name}/0", 2)


@pytest.mark.slow
def test_many_messages_are_loaded_in_bounded_batches_and_a_driver_that_died_goes_on_where_it_was(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.grow(2)
    shop.specs(topic_document(topic, max_messages_per_batch=4))
    topic.send(*(order(number, 1) for number in range(5)))
    topic.send(*(order(number, 1) for number in range(5, 9)), partition=1)

    whole, dead = BronzeIngest.close, []

    def close(self: BronzeIngest, winner: Winner) -> Closing:
        if winner.batch_seq == 2 and not dead:
            dead.append(winner)
            raise Died
        return whole(self, winner)

    monkeypatch.setattr(BronzeIngest, "close", close)
    with pytest.raises(Died):
        shop.run(ORDERS)
    assert len(placed(shop)) == 8
    report = shop.run(ORDERS)

    assert [row[0] for row in placed(shop)] == [f"o{number}" for number in range(9)]
    assert (report.outcome, report.batch_seq, report.table_rows) == (Outcome.COMMITTED, 3, 9)


def test_a_run_that_another_one_has_overtaken_finds_nothing_new_and_nothing_lost(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 1))
    ensure = BronzeIngest.ensure_table

    def overtaken(ingest: BronzeIngest) -> None:
        monkeypatch.setattr(BronzeIngest, "ensure_table", ensure)
        topic.send(order(2, 1))
        assert shop.run(ORDERS).rows.read == 2
        ensure(ingest)

    monkeypatch.setattr(BronzeIngest, "ensure_table", overtaken)
    report = shop.run(ORDERS)
    assert (report.outcome, report.notes) == (Outcome.NO_OP, ())
    assert placed(shop) == [("o1", 0, 0), ("o2", 0, 1)]


def test_a_partition_that_is_added_is_read_from_its_start(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic, starting_offsets="latest"))
    topic.send(order(1, 1))
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED, "the start is pinned by a batch, even an empty one"
    topic.grow(2)
    topic.send(order(2, 1))
    topic.send(order(3, 1), partition=1)
    assert shop.run(ORDERS).rows.read == 2
    assert placed(shop) == [("o2", 0, 1), ("o3", 1, 0)]


def test_a_start_by_time_leaves_out_what_was_sent_before(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic, starting_offsets="2013-01-02T00:00:00Z"))
    topic.send(order(1, 1), timestamp=1356998400000)
    topic.send(order(2, 1), timestamp=1357084800000)
    shop.run(ORDERS)
    assert placed(shop) == [("o2", 0, 1)]


@pytest.mark.slow
def test_messages_deleted_before_they_were_read_fail_the_run_unless_the_spec_goes_on_without_them(
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
    assert "fail_on_data_loss: false" in refused.message.splitlines()[-1]

    shop.specs(topic_document(topic, fail_on_data_loss=False))
    report = shop.run(ORDERS)
    assert [note for note in report.notes if note.startswith("lost: ")]
    assert placed(shop) == [("o1", 0, 0), ("o4", 0, 3)]
    assert shop.run(ORDERS).notes == (), "a loss is told once"


@pytest.mark.slow
def test_a_topic_that_was_created_again_is_another_topic(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 1))
    shop.run(ORDERS)
    topic.delete()
    topic.create()
    topic.send(order(2, 1), order(3, 1))

    refused = shop.run(ORDERS)
    assert f"{topic.name}: it was deleted and created again" in refused.message

    shop.specs(topic_document(topic, fail_on_data_loss=False))
    shop.run(ORDERS)
    assert placed(shop) == [("o1", 0, 0), ("o2", 0, 0), ("o3", 0, 1)]


def test_only_committed_transactions_are_read_and_their_marks_are_no_loss(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic))
    topic.send(order(1, 1), transaction="commit")
    topic.send(order(2, 1), transaction="abort")
    topic.send(order(3, 1), transaction="commit")
    report = shop.run(ORDERS)
    assert [row[0] for row in placed(shop)] == ["o1", "o3"]
    assert report.rows.read == 2
    assert shop.run(ORDERS).outcome is Outcome.NO_OP


def test_few_messages_wait_for_more_until_their_latency_is_over(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs(topic_document(topic, min_bytes_per_file="1 MB", allowed_latency="1 hours"))
    topic.send(order(1, 1))
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED, "nothing says yet how large a message becomes"
    topic.send(order(2, 1), order(3, 1))
    shop.specs(topic_document(topic, min_bytes_per_file="1 MB", allowed_latency="1 hours", max_messages_per_batch=1))
    waiting = shop.run(ORDERS)
    assert (waiting.outcome, waiting.notes) == (
        Outcome.NO_OP,
        ("2 messages wait for more (min_bytes_per_file, allowed_latency)",),
    )
    shop.specs(topic_document(topic, min_bytes_per_file="1 MB", allowed_latency="0 seconds"))
    assert shop.run(ORDERS).rows.read == 2


def test_an_unreachable_broker_is_tried_again_and_is_named(
    shop: Lakehouse, topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.specs(topic_document(topic))
    monkeypatch.setenv("LAKEHOUSE_KAFKA", '{"main": {"bootstrap.servers": "127.0.0.1:1"}}')
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.NOT_READY
    assert report.message.startswith("The Kafka cluster main at 127.0.0.1:1 does not answer")
    assert not shop.paths.table(ORDERS).exists()

"""Refused Kafka messages replayed: each keeps its offset, key and time, and the topic is read on where it was."""

from __future__ import annotations

import json

from include.contracts.row_status import RowStatus
from include.control.log.delta_log import read_commit
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

ORDERS = "bronze.orders"


def test_a_replayed_message_keeps_its_place_and_the_next_batch_goes_on_behind_the_last(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs({**topic_document(topic), "expectations": [AT_LEAST_0]})
    topic.send(order(1, 5), order(2, -7), "{broken")
    assert shop.run(ORDERS).rows.quarantined == 2
    waiting = shop.waiting(ORDERS)
    (broken,) = (row for row in waiting if row.record == "{broken")
    assert (broken.source, broken.position) == (f"{topic.name}/0", 2)
    records = {row.id: {"order_id": "o3", "amount": 1} if row == broken else {"amount": 7} for row in waiting}
    stated = "\n".join(json.dumps({"id": row, "record": record}) for row, record in records.items())
    report = shop.replay(ORDERS, edited=stated, rows={"ids": [*records]})
    assert report.rows.applied == 2, report.message
    topic.send(order(4, 4))
    later = shop.run(ORDERS, 2)
    assert (later.rows.read, later.rows.applied) == (1, 1)
    commit = read_commit(shop.paths.table(ORDERS), later.version or 0)
    assert commit is not None
    assert commit.metadata["sources"]["offsets"] == {topic.name: {"0": [3, 4]}}
    assert shop.rows(ORDERS, "order_id", "_partition", "_offset") == [
        ("o1", 0, 0), ("o2", 0, 1), ("o3", 0, 2), ("o4", 0, 3)
    ]  # fmt: skip
    times = [at for _, at in shop.rows(ORDERS, "_offset", "_timestamp")]
    assert None not in times
    assert times == sorted(times)
    assert [row.attempts for row in shop.waiting(ORDERS, RowStatus.REPLAYED)] == [1, 1]

"""A topic of a real broker, for producers and its administrator."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.documents.specs import Document, bronze_document
from tests.support.waiting import wait_for

QUIET = {"log_level": "0"}


@dataclass(frozen=True)
class KafkaTopic:
    """One topic.

    Attributes:
        address: `bootstrap.servers`.
        name: the name of the topic.
    """

    address: str
    name: str

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, **QUIET})

    def create(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create the topic, with its settings; right after a deletion the broker refuses the name for a moment."""
        deadline = time.monotonic() + 10
        while True:
            topic = NewTopic(self.name, num_partitions=partitions, config=dict(config or {}))
            (creation,) = self.admin.create_topics([topic]).values()
            if creation.exception() is None:
                wait_for(lambda: self.name in self.admin.list_topics(timeout=10).topics)
                return
            if time.monotonic() > deadline:
                creation.result()
            time.sleep(0.2)

    def delete(self) -> None:
        for change in self.admin.delete_topics([self.name]).values():
            change.result()

    def grow(self, partitions: int) -> None:
        """Set the number of partitions."""
        for change in self.admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            change.result()

    def expire(self, partition: int, before: int) -> None:
        """Delete the messages below an offset, as retention does."""
        for change in self.admin.delete_records([TopicPartition(self.name, partition, before)]).values():
            change.result()

    def send(
        self,
        *values: Mapping[str, Any] | str | bytes | None,
        partition: int = 0,
        key: str | None = None,
        transaction: str = "",
        **more: Any,
    ) -> None:
        """Send messages to one partition, rows as JSON.

        With `transaction` they are sent in a transaction, which ends with `commit` or `abort`.
        """
        conf = {"bootstrap.servers": self.address, **QUIET}
        producer = Producer({**conf, "transactional.id": "tests"} if transaction else conf)
        if transaction:
            producer.init_transactions()
            producer.begin_transaction()
        for value in values:
            raw = json.dumps(value) if isinstance(value, Mapping) else value
            producer.produce(self.name, raw, key=key, partition=partition, **more)
        assert producer.flush(20) == 0, "the broker took every message"
        if transaction:
            {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[transaction]()

    def group_offsets(self, group: str) -> dict[int, int]:
        """Return partition -> offset that a consumer group has committed."""
        (answer,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {place.partition: place.offset for place in answer.result().topic_partitions if place.topic == self.name}


def topic_document(topic: KafkaTopic, columns: dict[str, Any] | None = None, **source: Any) -> Document:
    """Return the spec of a bronze table of orders that reads a topic."""
    own_source = {"kafka": "main", "topics": [topic.name], "format": "json", **source}
    return bronze_document(source=own_source, **({"columns": columns} if columns else {}))

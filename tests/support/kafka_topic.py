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

QUIET = {"log_level": "0"}


@dataclass(frozen=True)
class KafkaTopic:
    """One topic.

    Attributes:
        address: `bootstrap.servers`.
        name: of the topic.
    """

    address: str
    name: str

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, **QUIET})

    def create(self, partitions: int = 1) -> None:
        """Create the topic; right after a deletion the broker refuses the name for a moment."""
        deadline = time.monotonic() + 10
        while True:
            (made,) = self.admin.create_topics([NewTopic(self.name, num_partitions=partitions)]).values()
            if made.exception() is None:
                return
            if time.monotonic() > deadline:
                made.result()
            time.sleep(0.2)

    def delete(self) -> None:
        for done in self.admin.delete_topics([self.name]).values():
            done.result()

    def grow(self, partitions: int) -> None:
        """Set the number of partitions."""
        for done in self.admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            done.result()

    def expire(self, partition: int, before: int) -> None:
        """Delete the messages below an offset, as retention does."""
        for done in self.admin.delete_records([TopicPartition(self.name, partition, before)]).values():
            done.result()

    def send(
        self,
        *values: Mapping[str, Any] | str | bytes | None,
        partition: int = 0,
        key: str | None = None,
        transaction: str = "",
        **more: Any,
    ) -> None:
        """Send messages to one partition, rows as JSON.

        `transaction` says how the one around them ends, `commit` or `abort`; without it there is none.
        """
        conf = {"bootstrap.servers": self.address, **QUIET}
        producer = Producer({**conf, "transactional.id": "of-tests"} if transaction else conf)
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
        (told,) = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return {one.partition: one.offset for one in told.result().topic_partitions if one.topic == self.name}


def fed_by(topic: KafkaTopic, columns: dict[str, Any] | None = None, **source: Any) -> Document:
    """Return the spec of a bronze table of orders that reads a topic."""
    stated = {"kafka": "main", "topics": [topic.name], "format": "json", **source}
    return bronze_document(source=stated, **({"columns": columns} if columns else {}))

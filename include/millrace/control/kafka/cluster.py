"""Read topics and offsets from Kafka brokers, without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.control.kafka.offsets import AvailableOffsets, Offsets
from millrace.control.log.batch import OffsetRanges
from millrace.errors import BadInputError, NotReadyError, SpecError, StorageError

_TIMEOUT_S = 10.0

# Errors reach the caller as exceptions; the client itself would print a line for each of its retries.
_QUIET = {"log_level": "0"}

_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)
"""Errors that a person must fix: a retry does not help."""

Partitions = Mapping[str, Sequence[int]]


class KafkaCluster:
    """One Kafka cluster.

    Args:
        name: its name in LAKEHOUSE_KAFKA.
        conf: the client's settings by librdkafka's names, `bootstrap.servers` at least; they may hold secrets.
    """

    def __init__(self, name: str, conf: Mapping[str, str]) -> None:
        self._name = name
        self.conf = dict(conf)

    @classmethod
    def of(cls, name: str, clusters: Mapping[str, Mapping[str, str]]) -> KafkaCluster:
        """Return the cluster that the setting LAKEHOUSE_KAFKA gives this name.

        Raises:
            SpecError: the setting has no such cluster, or no `bootstrap.servers` for it.
        """
        if "bootstrap.servers" not in clusters.get(name, {}):
            names = ", ".join(sorted(clusters)) or "no cluster"
            example = json.dumps({name: {"bootstrap.servers": "broker:9092"}})
            msg = f"LAKEHOUSE_KAFKA does not say where the Kafka cluster {name!r} is, it names {names}: add {example}"
            raise SpecError(msg)
        return cls(name, clusters[name])

    def available_offsets(self, source: KafkaSource, of: Collection[str] | None = None) -> AvailableOffsets:
        """Read the offsets of the source's topics that the brokers still have, up to the first open transaction.

        Args:
            source: the source.
            of: other topics to look at, of which some may be gone.

        Raises:
            NotReadyError: no broker answers.
            StorageError: the brokers refuse this user.
            BadInputError: one of the topics does not exist.
        """
        client_errors: list[KafkaError] = []
        conf: dict[str, Any] = {**self.conf, **_QUIET, "error_cb": client_errors.append}
        admin = AdminClient(conf)
        try:
            topics = {name: topic.partitions for name, topic in admin.list_topics(timeout=_TIMEOUT_S).topics.items()}
            wanted = self._topics_of(admin, source, topics, of)
            partitions = {topic: sorted(topics[topic]) for topic in wanted if topic in topics}
            first = _offsets(admin, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            end = _offsets(admin, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            start = _start_offsets(admin, partitions, source, first, end)
            described = _described_topics(admin, partitions)
            ids = {topic: str(answer.result().topic_id) for topic, answer in described.items()}
            return AvailableOffsets(ids, first, end, start)
        except KafkaException as error:
            admin.poll(0)  # delivers errors that the client met in the background, such as a wrong password
            last: KafkaError = error.args[0]
            if refusal := next((e for e in (*client_errors, last) if e.code() in _REFUSALS), None):
                raise StorageError(
                    f"The Kafka cluster {self._name} at {self.conf['bootstrap.servers']} refuses this user: "
                    f"{refusal.str()}.\nLet the user of LAKEHOUSE_KAFKA describe and read {source.label}, "
                    "or correct its password; then run this again."
                ) from error
            raise NotReadyError(
                f"The Kafka cluster {self._name} at {self.conf['bootstrap.servers']} does not answer "
                f"({(client_errors or [last])[-1].str()})\nSee that its brokers run and that LAKEHOUSE_KAFKA names "
                "them; the run tries again."
            ) from error

    def record_group_offsets(self, group: str, ranges: OffsetRanges) -> None:
        """Commit the offsets that a consumer group has read, for lag monitors; Millrace never reads them back.

        Raises:
            KafkaException: the brokers refuse the commit.
        """
        reached = [
            TopicPartition(topic, partition, end)
            for topic, partitions in ranges.items()
            for partition, (_, end) in partitions.items()
        ]
        consumer = Consumer({**self.conf, **_QUIET, "group.id": group, "enable.auto.commit": False})
        try:
            consumer.commit(offsets=reached, asynchronous=False)
        finally:
            consumer.close()

    def _topics_of(
        self, admin: AdminClient, source: KafkaSource, existing: Collection[str], of: Collection[str] | None
    ) -> Collection[str]:
        if of is None and source.topic_pattern:
            return [topic for topic in existing if source.reads(topic)]
        wanted = source.topics if of is None else of
        missing = [topic for topic in wanted if topic not in existing]
        for answer in _described_topics(admin, missing).values():
            error = answer.exception()
            if isinstance(error, KafkaException) and error.args[0].code() in _REFUSALS:
                raise error  # the topic may exist, but not for this user
        if missing and of is None:
            visible = [topic for topic in existing if not topic.startswith("__")]
            raise BadInputError(
                f"The Kafka cluster {self._name} has no topic {', '.join(missing)}; its topics are "
                f"{', '.join(sorted(visible)) or 'none'}\nCorrect source.topics of the spec, or create the topic."
            )
        return wanted


def _start_offsets(
    admin: AdminClient, partitions: Partitions, source: KafkaSource, first: Offsets, end: Offsets
) -> Offsets:
    """Return the offsets of `starting_offsets`; the end of a partition whose messages are all older."""
    if not isinstance(source.starting_offsets, datetime):
        return first if source.starting_offsets == "earliest" else end
    instant = OffsetSpec.for_timestamp(int(source.starting_offsets.timestamp() * 1000))
    return {
        topic: {partition: at if at >= 0 else end[topic][partition] for partition, at in of_topic.items()}
        for topic, of_topic in _offsets(admin, partitions, instant).items()
    }


def _offsets(admin: AdminClient, partitions: Partitions, spec: OffsetSpec) -> dict[str, dict[int, int]]:
    request = {TopicPartition(topic, number): spec for topic, numbers in partitions.items() for number in numbers}
    if not request:
        return {}
    answers: dict[TopicPartition, Future[Any]] = admin.list_offsets(
        request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT_S
    )
    offsets: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
    for where, answer in answers.items():
        offsets[where.topic][where.partition] = answer.result().offset
    return offsets


def _described_topics(admin: AdminClient, topics: Iterable[str]) -> dict[str, Future[Any]]:
    return admin.describe_topics(TopicCollection(list(topics)), request_timeout=_TIMEOUT_S) if topics else {}

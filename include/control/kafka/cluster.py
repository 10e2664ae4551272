"""Asks Kafka brokers, without Spark, which topics there are and which offsets they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from include.contracts.spec.bronze_sources import KafkaSource
from include.control.kafka.offsets import HeldOffsets, Offsets
from include.control.log.batch import OffsetRanges
from include.errors import BadInputError, NotReadyError, SpecError, StorageError

_PATIENCE_S = 10.0

# What goes wrong reaches the caller as an exception; the client itself would print a line at each of many tries.
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
"""What a person must grant, or correct: waiting does not mend it."""

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
        """The cluster that LAKEHOUSE_KAFKA names so.

        Raises:
            SpecError: it names no such cluster, or does not say where its brokers are.
        """
        if "bootstrap.servers" not in clusters.get(name, {}):
            known = ", ".join(sorted(clusters)) or "no cluster"
            example = json.dumps({name: {"bootstrap.servers": "broker:9092"}})
            msg = f"LAKEHOUSE_KAFKA does not say where the Kafka cluster {name!r} is, it names {known}: add {example}"
            raise SpecError(msg)
        return cls(name, clusters[name])

    def held(self, source: KafkaSource) -> HeldOffsets:
        """What the brokers hold of the source's topics, as far as every transaction there has ended.

        Raises:
            NotReadyError: no broker answers.
            StorageError: the brokers refuse this user.
            BadInputError: one of the topics does not exist.
        """
        said: list[KafkaError] = []
        conf: dict[str, Any] = {**self.conf, **_QUIET, "error_cb": said.append}
        admin = AdminClient(conf)
        try:
            return self._held(admin, source)
        except KafkaException as error:
            admin.poll(0)  # hands over what the client met meanwhile, such as a password that is wrong
            met: KafkaError = error.args[0]
            if refusal := next((one for one in (*said, met) if one.code() in _REFUSALS), None):
                raise StorageError(self._refused(refusal, source)) from error
            raise NotReadyError(self._unreachable(said[-1] if said else met)) from error

    def record_group_offsets(self, group: str, ranges: OffsetRanges) -> None:
        """Tell the brokers how far a consumer group has read, for their lag monitors; Millrace never reads it back.

        Raises:
            KafkaException: the brokers do not take it.
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

    def _held(self, admin: AdminClient, source: KafkaSource) -> HeldOffsets:
        known = {name: topic.partitions for name, topic in admin.list_topics(timeout=_PATIENCE_S).topics.items()}
        partitions = {topic: sorted(known[topic]) for topic in self._wanted(admin, source, known)}
        first = _offsets(admin, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        end = _offsets(admin, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return HeldOffsets(_topic_ids(admin, partitions), first, end, _start(admin, partitions, source, first, end))

    def _wanted(self, admin: AdminClient, source: KafkaSource, known: Iterable[str]) -> list[str]:
        """The source's topics; a pattern takes none of Kafka's own, such as `__consumer_offsets`."""
        if source.topic_pattern:
            own = re.compile(source.topic_pattern)
            return [topic for topic in known if own.fullmatch(topic) and not topic.startswith("__")]
        if missing := [topic for topic in source.topics if topic not in set(known)]:
            _require_allowed(admin, missing)
            there = ", ".join(sorted(topic for topic in known if not topic.startswith("__"))) or "none"
            msg = (
                f"The Kafka cluster {self._name} has no topic {', '.join(missing)}; its topics are {there}\nCorrect "
                "source.topics of the spec, or create the topic."
            )
            raise BadInputError(msg)
        return list(source.topics)

    def _refused(self, error: KafkaError, source: KafkaSource) -> str:
        return (
            f"The Kafka cluster {self._name} at {self.conf['bootstrap.servers']} refuses this user: {error.str()}.\n"
            f"Let the user of LAKEHOUSE_KAFKA describe and read {source.label}, or correct its password; then run this "
            "again."
        )

    def _unreachable(self, error: KafkaError) -> str:
        return (
            f"The Kafka cluster {self._name} at {self.conf['bootstrap.servers']} does not answer "
            f"({error.str()})\nSee that its brokers run and that LAKEHOUSE_KAFKA names them; the run tries "
            "again."
        )


def _require_allowed(admin: AdminClient, topics: Iterable[str]) -> None:
    """Require that topics which no listing shows are missing, and not only hidden from this user.

    Raises:
        KafkaException: the user may not see one of them.
    """
    for answer in admin.describe_topics(TopicCollection(list(topics)), request_timeout=_PATIENCE_S).values():
        error = answer.exception()
        if isinstance(error, KafkaException) and error.args[0].code() in _REFUSALS:
            raise error


def _start(admin: AdminClient, partitions: Partitions, source: KafkaSource, first: Offsets, end: Offsets) -> Offsets:
    """Where `starting_offsets` point; behind the last message where none is as young as the instant."""
    if not isinstance(source.starting_offsets, datetime):
        return first if source.starting_offsets == "earliest" else end
    instant = OffsetSpec.for_timestamp(int(source.starting_offsets.timestamp() * 1000))
    found = _offsets(admin, partitions, instant)
    return {
        topic: {partition: at if at >= 0 else end[topic][partition] for partition, at in offsets.items()}
        for topic, offsets in found.items()
    }


def _offsets(admin: AdminClient, partitions: Partitions, wanted: OffsetSpec) -> dict[str, dict[int, int]]:
    asked = {TopicPartition(topic, one): wanted for topic, ones in partitions.items() for one in ones}
    if not asked:
        return {}
    answers: dict[TopicPartition, Future[Any]] = admin.list_offsets(
        asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_PATIENCE_S
    )
    found: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
    for where, answer in answers.items():
        found[where.topic][where.partition] = answer.result().offset
    return found


def _topic_ids(admin: AdminClient, topics: Iterable[str]) -> dict[str, str]:
    described = admin.describe_topics(TopicCollection(list(topics)), request_timeout=_PATIENCE_S) if topics else {}
    return {topic: str(answer.result().topic_id) for topic, answer in described.items()}

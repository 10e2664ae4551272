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
from millrace.control.kafka.java_settings import java_settings
from millrace.control.kafka.offsets import AvailableOffsets, Offsets
from millrace.control.log.batch import OffsetRanges
from millrace.errors import BadInputError, MillraceError, NotReadyError, SpecError, StorageError

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
    """One Kafka cluster; its settings may hold secrets.

    Args:
        name: its name in LAKEHOUSE_KAFKA.
        conf: the settings of this client, librdkafka, with `bootstrap.servers` at least.
        java_conf: the same for Spark's Java client.
    """

    def __init__(self, name: str, conf: Mapping[str, str], java_conf: Mapping[str, str]) -> None:
        self._name = name
        self._conf = dict(conf)
        self.java_conf = java_conf

    @classmethod
    def of(cls, name: str, clusters: Mapping[str, Mapping[str, str]]) -> KafkaCluster:
        """Return the cluster that the setting LAKEHOUSE_KAFKA gives this name.

        Raises:
            SpecError: the setting has no such cluster, no `bootstrap.servers` for it, or settings that one of the two
                clients cannot have.
        """
        if "bootstrap.servers" not in clusters.get(name, {}):
            names = ", ".join(sorted(clusters)) or "no cluster"
            example = json.dumps({name: {"bootstrap.servers": "broker:9092"}})
            msg = f"LAKEHOUSE_KAFKA does not say where the Kafka cluster {name!r} is, it names {names}: add {example}"
            raise SpecError(msg)
        return cls(name, clusters[name], java_settings(name, clusters[name]))

    def available_offsets(self, source: KafkaSource, of: Collection[str] | None = None) -> AvailableOffsets:
        """Read the offsets of the source's topics that the brokers still have, up to the first open transaction.

        Args:
            source: the source.
            of: other topics to look at, of which some may be gone.

        Raises:
            NotReadyError: no broker answers.
            StorageError: the brokers refuse this user, or one side refuses the other's certificate.
            BadInputError: one of the topics does not exist.
            SpecError: a setting of the cluster has a wrong value.
        """
        client_errors: list[KafkaError] = []
        conf: dict[str, Any] = {**self._conf, **_QUIET, "error_cb": client_errors.append}
        try:
            admin = AdminClient(conf)
        except KafkaException as error:
            cause = f"LAKEHOUSE_KAFKA: the cluster {self._name} has a wrong value: {error.args[0].str()}"
            raise SpecError(cause, "Correct it: the values are those of librdkafka.") from error
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
            raise self._failure(source, [*client_errors, error.args[0]]) from error

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
        consumer = Consumer({**self._conf, **_QUIET, "group.id": group, "enable.auto.commit": False})
        try:
            consumer.commit(offsets=reached, asynchronous=False)
        finally:
            consumer.close()

    def _failure(self, source: KafkaSource, errors: Sequence[KafkaError]) -> MillraceError:
        """Return the error for a request that failed, of whose causes a refusal is the true one.

        Args:
            source: the source.
            errors: the errors that the client met in the background, and the one of the request as the last.
        """
        cluster = f"The Kafka cluster {self._name} at {self._conf['bootstrap.servers']}"
        if refusal := next((error for error in errors if error.code() in _REFUSALS), None):
            return StorageError(
                f"{cluster} refuses this user: {refusal.str()}.",
                f"Let the user of LAKEHOUSE_KAFKA describe and read {source.label}, or correct its password; then run "
                "this again.",
            )
        if refusal := next((error for error in errors if _refuses_certificate(error)), None):
            return StorageError(
                f"{cluster} and its client do not trust each other: {refusal.str()}",
                "Let ssl.ca.location of LAKEHOUSE_KAFKA have the authority of the brokers' certificates, which must "
                "name their hosts, and let the brokers know the authority of ssl.certificate.location.",
            )
        return NotReadyError(
            f"{cluster} does not answer ({(errors[:-1] or errors)[-1].str()})",
            "See that its brokers run and that LAKEHOUSE_KAFKA names them; the run tries again.",
        )

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


def _refuses_certificate(error: KafkaError) -> bool:
    """Return whether one side refuses the other's certificate. A broker's refusal has a code of lost connections."""
    return error.code() == KafkaError._SSL or "SSL routines" in error.str()


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

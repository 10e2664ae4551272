"""Read pinned offsets of Kafka topics as records, with the position of each."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import BatchSources
from millrace_spark.transforms.messages import message_rows

_REDACTED = "spark.sql.redaction.string.regex"
_SECRETS = r'key: "kafka\.(sasl\.jaas\.config|ssl\.keystore\.key)"\s+value: .*'
"""The secrets of a read as Spark Connect writes its request into events and the descriptions of jobs."""

_NO_MESSAGES = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, epoch int"
)
"""The columns of Spark's Kafka source that bronze uses, and the epoch."""


def read_messages(
    session: SparkSession, spec: BronzeSpec, java_conf: Mapping[str, str], sources: BatchSources
) -> DataFrame:
    """Return the messages of a batch as bronze rows (see `message_rows`).

    A message that no longer exists fails the read: the planner reports lost messages.

    Args:
        session: the session that reads them; it will redact the secrets of `java_conf`.
        spec: the bronze table.
        java_conf: the settings of Spark's Kafka client for the cluster.
        sources: the offsets to read.
    """
    spans = {
        topic: {partition: span for partition, span in partitions.items() if span[0] < span[1]}
        for topic, partitions in sources.offsets.items()
    }
    spans = {topic: partitions for topic, partitions in spans.items() if partitions}
    if not spans:
        return message_rows(session.createDataFrame([], schema=_NO_MESSAGES), spec)
    _redact_secrets(session)
    options = {
        **{f"kafka.{name}": value for name, value in java_conf.items()},
        # Only committed transactions; the planner reads the end offsets of those as well.
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: list(partitions) for topic, partitions in spans.items()}),
        "startingOffsets": _bound(spans, 0),
        "endingOffsets": _bound(spans, 1),
        "includeHeaders": "true",
    }
    epochs = {
        f"{topic}/{partition}": F.lit(sources.epochs[topic][partition])
        for topic in spans.keys() & sources.epochs.keys()
        for partition in spans[topic]
    }
    by_partition = F.create_map(*(each for where, epoch in epochs.items() for each in (F.lit(where), epoch)))
    known = F.try_element_at(by_partition, F.concat_ws("/", "topic", "partition")) if epochs else F.lit(None)
    messages = session.read.format("kafka").options(**options).load()
    return message_rows(messages.withColumn("epoch", F.coalesce(known.cast("int"), F.lit(0))), spec)


def _redact_secrets(session: SparkSession) -> None:
    """Let Spark redact the secrets of reads, and what its settings redact already."""
    own = session.conf.get(_REDACTED)
    if own is None or _SECRETS not in own:
        session.conf.set(_REDACTED, f"{own}|{_SECRETS}" if own else _SECRETS)


def _bound(spans: Mapping[str, Mapping[int, tuple[int, int]]], end: int) -> str:
    return json.dumps(
        {topic: {str(partition): span[end] for partition, span in parts.items()} for topic, parts in spans.items()}
    )

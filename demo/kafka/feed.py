"""The flight events of a day as messages of a topic, and the tables that read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from demo.source_system.landing import day_folder
from embedded.errors import StackError

TOPIC = "flight_events"
CLUSTER = "demo"
_PARTITIONS = 2


def create_topic(address: str) -> None:
    """Create the topic on the broker at `address`."""
    admin = AdminClient({"bootstrap.servers": address})
    for result in admin.create_topics([NewTopic(TOPIC, num_partitions=_PARTITIONS)]).values():
        result.result()


def send_day(address: str, landing: Path, day: date) -> int:
    """Send the source system's events of a day, in their order, keyed by flight; return the number of messages.

    Raises:
        StackError: the broker did not accept all messages.
    """
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": "0"})
    lines = list(_lines(day_folder(landing, TOPIC, day)))
    for line in lines:
        producer.produce(TOPIC, line, key=json.loads(line)["flight_id"])
        producer.poll(0)
    if left := producer.flush(30):
        raise StackError(f"The broker at {address} did not accept {left} of {len(lines)} messages.")
    return len(lines)


def write_specs(file_specs: Path, folder: Path) -> None:
    """Write specs of flights that read the topic: those of the landing files with another source.

    Args:
        file_specs: the folder of the specs that read landing files.
        folder: the folder of the new specs.
    """
    for table in ("bronze/flights/flight_events.yaml", "silver/flights/flights.yaml"):
        document = yaml.safe_load((file_specs / table).read_text(encoding="utf-8"))
        if document["table"].startswith("bronze."):
            document["source"] = {"kafka": CLUSTER, "topics": [TOPIC], "format": "json"}
        (folder / table).parent.mkdir(parents=True, exist_ok=True)
        (folder / table).write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def _lines(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*.json.gz")):
        with gzip.open(file, "rt", encoding="utf-8", newline="\n") as lines:
            yield from (line.rstrip("\n") for line in lines)

"""Notes about the order of Kafka messages."""

from __future__ import annotations

import pytest

from millrace.control.kafka.order import sequence_notes
from tests.support.documents.specs import bronze_spec, silver_document, silver_spec

TOPIC = bronze_spec(source={"kafka": "main", "topics": ["orders"], "format": "json"})
EPOCH = {"epoch": {"type": "int", "from": "coalesce(_epoch, 0)"}}
SENT = {"sent": {"type": "bigint", "from": "_offset"}}
BOTH = {"sent": {"type": "bigint", "from": "coalesce(_epoch, 0) * 1000000000000 + _offset"}}


@pytest.mark.parametrize(
    ("columns", "sequence_by", "is_noted"),
    [
        (SENT, ["sent"], True),
        (SENT | EPOCH, ["sent", "epoch"], True),
        (SENT | EPOCH, ["epoch", "sent"], False),
        (BOTH, ["sent"], False),
        ({}, ["event_at", "event_seq"], False),
    ],
)
def test_check_notes_tables_whose_order_begins_again_with_the_offsets_of_a_topic(
    columns: dict[str, object], sequence_by: list[str], *, is_noted: bool
) -> None:
    silver = silver_spec(columns={**silver_document()["columns"], **columns}, sequence_by=sequence_by)
    notes = list(sequence_notes({each.table: each for each in (TOPIC, silver)}))
    assert [note.split(":")[0] for note in notes] == ["silver.orders"] * is_noted
    assert all("begin its sequence_by with a column whose `from` is coalesce(_epoch, 0)" in note for note in notes)
    assert list(sequence_notes({each.table: each for each in (bronze_spec(), silver)})) == [], "it reads files"

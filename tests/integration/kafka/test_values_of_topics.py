"""What messages hold, from a real Kafka broker: values, keys and headers, and fields that nobody declared."""

from __future__ import annotations

import json

from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from millrace.contracts.spec.record_fields import field_text
from millrace.errors import Outcome
from tests.support.documents.specs import silver_document
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.texts import ODD_TEXTS, texts

ORDERS, SILVER = "bronze.orders", "silver.orders"


def test_a_message_keeps_its_values_and_origin_or_is_quarantined_with_its_place_and_a_null_message_deletes_its_key(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    columns = {
        "order_id": {"nullable": False},
        "amount": {"from": "`Amount.in €`"},
        "customer": {"type": "string"},
        "sent_on": {"type": "date"},
        "name": {"from": "customer"},
    }
    transforms = {"customer": "cast(key as string)", "sent_on": "to_date(timestamp)"}
    own = {"customer": {"nullable": False}, "amount": {"type": "int"}, "at": {"type": "bigint", "from": "_offset"}}
    shop.specs(
        topic_document(topic, columns, transforms=transforms, headers=True),
        silver_document(keys=["customer"], sequence_by=["at"], columns=own, apply_as_deletes="_null_message"),
    )
    first = {"order_id": "o1", "Amount.in €": "5", "amount": 6, "customer": "Ann"}
    topic.send(first, key="c1", headers={"trace": b"t1"}, timestamp=1357000000000)
    topic.send('{"order_id": "o2", ', b"\xff\xfe", "", {"order_id": None, "Amount.in €": "3"})
    topic.send({"order_id": "o2", "Amount.in €": "7"}, key="c2")
    topic.send({"order_id": "o3", "Amount.in €": "many"}, key="c3")
    topic.send(None, key="c1")

    report = shop.run(ORDERS)

    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (8, 4, 4)
    assert shop.rows(ORDERS, "_offset", "order_id", "_null_message") == [
        (0, "o1", False), (5, "o2", False), (6, "o3", False), (7, None, True)
    ]  # fmt: skip
    rows = DeltaTable(str(shop.paths.table(ORDERS))).to_pyarrow_table().to_pylist()
    (row,) = (row for row in rows if row["_offset"] == 0)
    assert (row["amount"], row["customer"], row["name"], str(row["sent_on"])) == ("5", "c1", "Ann", "2013-01-01")
    assert (row["_key"], row["_topic"], row["_partition"]) == (b"c1", topic.name, 0)
    assert row["_headers"] == [{"key": "trace", "value": b"t1"}]
    assert row["_timestamp"].isoformat() == "2013-01-01T00:26:40+00:00"
    assert json.loads(row["_rescued"]) == {"amount": "6"}
    refused = {row["position"]: (row["record"], row["reasons"][0]) for row in shop.quarantine(ORDERS)}
    assert {row["source"] for row in shop.quarantine(ORDERS)} == {f"{topic.name}/0"}
    assert refused[1] == ('{"order_id": "o2", ', "malformed record: it cannot be parsed as json")
    assert refused[2][0] == "no text, in base64: //4="
    assert refused[3][0] == ""
    assert "order_id" in refused[4][1]
    assert sorted(refused) == [1, 2, 3, 4]

    assert shop.run(SILVER).outcome is Outcome.COMMITTED
    assert shop.rows(SILVER, "customer", "amount") == [("c2", 7)]
    (refused_row,) = shop.quarantine(SILVER)
    assert (refused_row["source"], refused_row["position"]) == (f"{topic.name}/0", 6)


def test_keys_headers_and_values_of_any_text_come_out_as_they_went_in(shop: Lakehouse, topic: KafkaTopic) -> None:
    columns = {"note": {"type": "string"}, "customer": {"type": "string"}}
    shop.specs(topic_document(topic, columns, transforms={"customer": "cast(key as string)"}, headers=True))

    # One example is enough of Spark's time: it holds dozens of texts. Nothing is shrunk.
    @settings(max_examples=1, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(texts(), min_size=20, max_size=20))
    def goes_through(drawn: list[str]) -> None:
        sent = [*ODD_TEXTS, *drawn]
        for text in sent:
            topic.send({"note": text, f"?{text}": text}, key=text, headers=[(text, text.encode()), (text, None)])
        assert shop.run(ORDERS).rows.applied == len(sent)
        rows = shop.rows(ORDERS, "_offset", "note", "customer", "_key", "_headers", "_rescued")
        for text, (_, *row, headers, rescued) in zip(sent, sorted(rows), strict=True):
            assert row == [text, text, text.encode()]
            assert json.loads(rescued) == {field_text(f"?{text}"): text}
            # The C library under most producers but Java's ends a header's name at NUL; its value it does not.
            name = text.partition("\0")[0]
            assert headers == [{"key": name, "value": text.encode()}, {"key": name, "value": None}]

    goes_through()


def test_a_strict_spec_fails_on_a_new_field_and_an_evolving_one_makes_it_a_column(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs({**topic_document(topic), "on_drift": "fail"})
    topic.send(order(1, 5), order(2, 6, colour="red"), None)
    report = shop.run(ORDERS)
    assert (report.outcome, report.version) == (Outcome.BAD_INPUT, None)
    assert f'{topic.name}/0 has values that fit no column: {{"colour":"red"}}' in report.message
    shop.specs({**topic_document(topic), "on_drift": "evolve"})
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert shop.rows(ORDERS, "_offset", "order_id", "colour", "_rescued") == [
        (0, "o1", None, None),
        (1, "o2", "red", None),
        (2, None, None, None),
    ]


def test_a_time_that_spark_does_not_read_is_named_and_one_after_the_year_9999_is_kept(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    far = KafkaTopic(topic.address, f"{topic.name}.far")
    far.create(config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    shop.specs(topic_document(far))
    far.send(order(1, 1), timestamp=1_735_689_600_000_000)
    assert shop.run(ORDERS).outcome is Outcome.COMMITTED
    assert [row[:2] for row in shop.rows(ORDERS, "order_id", "_timestamp", "_rescued")] == [("o1", None)]
    far.send(order(2, 1), timestamp=1_735_689_600_000_000_000)
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message.startswith(
        "bronze.orders: a message has a time after the year 294247, which Spark cannot read"
    )

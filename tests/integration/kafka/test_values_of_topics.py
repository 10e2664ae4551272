"""What messages hold, from a real Kafka broker: values of every format, and fields that nobody declared."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from include.errors import Outcome
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.texts import ODD_TEXTS, texts

ORDERS = "bronze.orders"


def test_csv_values_are_read_by_the_order_of_the_columns(shop: Lakehouse, topic: KafkaTopic) -> None:
    columns = {"id": {"type": "string"}, "amount": {"type": "int"}, "name": {"type": "string"}}
    shop.specs(topic_document(topic, columns, format="csv", delimiter=";"))
    topic.send('a;5;"x;y"', "b;many;z", "c")
    report = shop.run(ORDERS)
    assert shop.rows(ORDERS, "id", "amount", "name") == [("a", 5, "x;y"), ("b", None, "z")]
    assert report.rows.quarantined == 1


def test_avro_values_are_read_by_their_schema(shop: Lakehouse, topic: KafkaTopic) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}, {"name": "extra", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "order", "fields": fields})
    columns = {"id": {"type": "bigint"}, "order_id": {"from": "ID"}, "total": {"type": "bigint", "from": "Amount"}}
    settings = {"field_names": "any_case", "transforms": {"id": "offset"}}
    shop.specs(topic_document(topic, columns, format="avro", avro_schema=schema, **settings))
    topic.send(b"\x02a\x0a\x02x", b"\x02")
    report = shop.run(ORDERS)
    assert shop.rows(ORDERS, "id", "order_id", "total", "_rescued") == [(0, "a", 5, '{"extra":"x"}')]
    assert report.rows.quarantined == 1


def test_a_column_reads_a_field_of_any_name_beside_one_of_the_message(shop: Lakehouse, topic: KafkaTopic) -> None:
    columns = {
        "order_id": {"type": "bigint"},
        "amount": {"type": "int", "from": "`Amount.in €`"},
        "name": {"from": "order_id"},
    }
    shop.specs(topic_document(topic, columns, transforms={"order_id": "offset"}))
    topic.send({"order_id": "o1", "Amount.in €": "5", "amount": 6}, {"order_id": "o2", "Amount.in €": "many"})
    assert shop.run(ORDERS).rows.applied == 2
    assert shop.rows(ORDERS, "order_id", "amount", "name", "_rescued") == [
        (0, 5, "o1", '{"amount":"6"}'), (1, None, "o2", '{"Amount.in €":"many"}')
    ]  # fmt: skip


def test_raw_values_stay_bytes(shop: Lakehouse, topic: KafkaTopic) -> None:
    columns = {"value": {"type": "binary"}, "size": {"type": "int"}}
    shop.specs(topic_document(topic, columns, format="raw", transforms={"size": "length(value)"}))
    topic.send(b"\xff\x00", None)
    shop.run(ORDERS)
    assert shop.rows(ORDERS, "value", "size") == [(None, None), (b"\xff\x00", 2)]


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
            assert json.loads(rescued) == {f"?{text}": text}
            # The C library under most producers but Java's ends a header's name at NUL; its value it does not.
            name = text.partition("\0")[0]
            assert headers == [{"key": name, "value": text.encode()}, {"key": name, "value": None}]

    goes_through()


def test_a_strict_spec_fails_on_a_message_that_does_not_fit_and_loads_it_once_it_may_be_rescued(
    shop: Lakehouse, topic: KafkaTopic
) -> None:
    shop.specs({**topic_document(topic), "on_drift": "fail"})
    topic.send(order(1, 5), order(2, 6, colour="red"))
    report = shop.run(ORDERS)
    assert (report.outcome, report.version) == (Outcome.BAD_INPUT, None)
    assert f'{topic.name}/0 has values that fit no column: {{"colour":"red"}}' in report.message
    shop.specs(topic_document(topic))
    assert shop.run(ORDERS).rows.applied == 2


def test_a_new_field_of_messages_becomes_a_column(shop: Lakehouse, topic: KafkaTopic) -> None:
    shop.specs({**topic_document(topic), "on_drift": "evolve"})
    topic.send(order(1, 5), order(2, 6, colour="red"), None)
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert shop.rows(ORDERS, "_offset", "order_id", "colour", "_rescued") == [
        (0, "o1", None, None),
        (1, "o2", "red", None),
        (2, None, None, None),
    ]

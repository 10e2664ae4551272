"""Where keys go: to copies and casts of a stated column, by whatever name; what is computed from one is told apart."""

from __future__ import annotations

from millrace.erase.reach import Reach, reach_notes, reach_of
from millrace.erase.subjects import kinds_in
from tests.support.documents.specs import bronze_document, catalog_of, gold_document, silver_document

COLUMNS = {"order_id": {"type": "string"}, "day": {"type": "date"}, "buyer": {"from": "who.id", "type": "string"}}
BRONZE = bronze_document(columns=COLUMNS, subject_keys={"buyer": "customer"})
SILVER = silver_document(
    keys=["order_id"],
    sequence_by=["order_id"],
    except_column_list=["initial"],
    columns={
        "order_id": {"type": "string"},
        "day": {"type": "date"},
        "client": {"from": "buyer", "type": "string"},
        "number": {"from": "cast(buyer AS bigint)", "type": "bigint"},
        "initial": {"from": "left(buyer, 1)", "type": "string"},
        "letter": {"from": "upper(left(buyer, 1))", "type": "string"},
        "hashed": {"from": "cast(md5(buyer) AS string)", "type": "string"},
        "seller": {"from": "order_id", "type": "string"},
    },
    subject_keys={"seller": "customer"},
)
BY_CLIENT = gold_document(
    "gold.by_client", group_by={"client": "o.client"}, refresh_by="client", refresh_from={"o": "client"}
)
BY_LETTER = gold_document(
    "gold.by_letter",
    group_by={"initial": "o.letter"},
    measures={"last": "max(o.client)"},
    refresh_by="initial",
    refresh_from={"o": "letter"},
)
BY_DAY = gold_document("gold.by_day", measures={"n": "count(*)"})
OTHER = bronze_document("bronze.prices")


def test_keys_are_followed_through_names_casts_and_layers_and_what_is_computed_from_one_is_told() -> None:
    specs = catalog_of(BRONZE, OTHER, SILVER, BY_CLIENT, BY_LETTER, BY_DAY).specs
    found = reach_of("customer", specs)
    assert kinds_in(specs) == ["customer"]
    assert list(found) == ["bronze.orders", "silver.orders", "gold.by_client", "gold.by_letter", "gold.by_day"]
    assert found["bronze.orders"] == Reach(("buyer",), ("who.id",), received=("buyer", "who.id"))
    silver = found["silver.orders"]
    assert (silver.keys, list(silver.computed)) == (("client", "number", "seller"), ["letter", "hashed"])
    assert (silver.received, silver.numbers) == (("buyer", "order_id", "who.id"), ("number",))
    assert found["gold.by_client"].keys == ("client",)
    by_letter = found["gold.by_letter"]
    assert (by_letter.keys, by_letter.computed) == ((), {"initial": "letter", "last": "max(o.client)"})
    assert found["gold.by_day"] == Reach(reads=("silver.orders",))


def test_numbers_stay_numbers_in_a_column_of_texts_and_lose_their_exact_value_as_floating_ones() -> None:
    numbers = {**COLUMNS, "buyer": {"from": "who.id", "type": "decimal(12,2)"}}
    as_text = {"client": {"from": "cast(buyer as string)", "type": "string"}}
    as_double = {"inexact": {"from": "cast(buyer as double)", "type": "double"}}
    silver = silver_document(keys=["client"], sequence_by=["client"], columns={**as_text, **as_double})
    bronze = bronze_document(columns=numbers, subject_keys={"buyer": "customer"})
    found = reach_of("customer", catalog_of(bronze, silver).specs)
    assert found["bronze.orders"].numbers == ("buyer", "who.id")
    of_silver = found["silver.orders"]
    assert (of_silver.keys, list(of_silver.computed), of_silver.numbers) == (
        ("client",), ["inexact"], ("buyer", "client", "who.id")
    )  # fmt: skip


def test_a_field_that_another_source_has_for_something_else_is_no_key_of_a_refused_row() -> None:
    columns = {name: {"type": "string"} for name in ("order_id", "buyer", "friend")}
    orders = bronze_document(columns=columns, subject_keys={"buyer": "customer", "friend": "customer"})
    returns = bronze_document("bronze.returns", columns={name: columns[name] for name in ("order_id", "buyer")})
    silver = silver_document(keys=["order_id"], sequence_by=["order_id"], columns={"order_id": {}, "client": {}})
    fields = {"bronze.orders": "buyer", "bronze.returns": "order_id"}
    silver |= {"sources": [{"table": table, "columns": {"client": field}} for table, field in fields.items()]}
    del silver["source"]
    of_silver = reach_of("customer", catalog_of(orders, returns, silver).specs)["silver.orders"]
    assert (of_silver.keys, of_silver.received) == (("client",), ("friend",))


def test_a_kind_that_no_spec_states_reaches_nothing() -> None:
    assert reach_of("employee", catalog_of(BRONZE, SILVER).specs) == {}


def test_a_check_says_what_keys_do_not_find_and_which_log_keeps_them_longer_than_the_files() -> None:
    short = {"maintenance": {"vacuum": {"retain": "7 days"}}}
    notes = list(reach_notes(catalog_of({**BRONZE, **short}, OTHER, {**SILVER, **short}, BY_LETTER, BY_DAY).specs))
    assert [note.split(":")[0] for note in notes] == [
        "silver.orders.letter is computed from a key (upper(left(buyer, 1)))",
        "silver.orders.hashed is computed from a key (cast(md5(buyer) AS string))",
        "silver.orders",
        "gold.by_letter.initial is computed from a key (letter)",
        "gold.by_letter.last is computed from a key (max(o.client))",
        "gold.by_day has no key",
    ], "bronze has no statistics of what it received"
    assert (
        "least and greatest client and number and seller of a file for 30 days, longer than the file (7 days)"
        in notes[2]
    )
    named = {"delta": {"delta.dataSkippingStatsColumns": "order_id,_batch_seq"}}
    assert len(list(reach_notes(catalog_of(BRONZE, {**SILVER, **short, **named}).specs))) == 2
    assert list(reach_notes(catalog_of(BRONZE).specs)) == []
    assert list(reach_notes(catalog_of(bronze_document()).specs)) == []

"""The proposed keys of a silver table: what the delivered rows say, and never more."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from millrace.control.landing.on_disk import LocalLanding
from millrace.inference.first_silver import silver_text
from millrace.inference.first_spec import guessed_source
from tests.support.storage.landing_files import avro_of


def proposed(landing: Path, *files: tuple[str, str]) -> str:
    """Return the text of the silver spec for files of the source `feed`: (path below it, content)."""
    for path, content in files:
        file = landing / "feed" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    with guessed_source(LocalLanding(str(landing)), "feed") as source:
        return silver_text("silver.feed", "bronze.feed", source.rows, by_day=source.delivered.by_day)


LIMITS = "limit_,customer_id,updated_at\n5,1,2013-01-01T08:00:00\n7,1,2013-01-01T09:00:00\n"
STATES = "n_id,created_at,updated_at\n1,2013-01-01,2013-01-01T08:00:00\n1,2013-01-01,2013-01-01T09:00:00\n"
DAY_1, DAY_2 = "date=2013-01-01/a.csv", "date=2013-01-02/a.csv"


@pytest.mark.parametrize(
    ("files", "keys", "sequence"),
    [
        ([(DAY_1, "city,order_id\nx,1\nx,2\n")], ["order_id"], None),
        ([("a.csv", "city,order_id\nx,1\nx,2\n")], ["order_id"], ["delivered_in"]),
        ([(DAY_1, STATES)], ["n_id"], ["updated_at"]),
        ([(DAY_1, LIMITS)], ["customer_id"], ["updated_at"]),
        ([(DAY_1, "tailnum,year\nN1,1999\nN2,1999\n"), (DAY_2, "tailnum,year\nN1,1999\nN2,1999\n")], ["tailnum"], None),
        ([(DAY_1, "origin,hour,wind\nJFK,1,1.5\nJFK,2,1.5\nLGA,1,1.5\n")], ["origin", "hour"], None),
        ([("a.csv", "delivered_in,x\n1,1\n2,1\n")], ["delivered_in"], ["delivered_in_file_of_this_name"]),
    ],
    ids=["unique", "no days", "states of a key", "unique by chance", "snapshots", "a pair", "the name is taken"],
)
def test_keys_and_sequence_follow_from_the_rows(
    tmp_path: Path, files: list[tuple[str, str]], keys: list[str], sequence: list[str] | None
) -> None:
    text = proposed(tmp_path, *files)
    spec = yaml.safe_load(text)
    assert (spec["keys"], spec.get("sequence_by")) == (keys, sequence)
    assert all(spec["columns"][name]["nullable"] is False for name in (*keys, *(sequence or ())))
    assert f"# {' and '.join(keys)}: never null" in text


def test_of_an_avro_file_only_texts_are_taken_for_words_of_a_list(tmp_path: Path) -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    rows = [{"id": n, "size": n % 2, "state": "ab"[n % 2], "price": Decimal(n) / 4} for n in range(10)]
    (tmp_path / "feed").mkdir()
    kinds = {"id": "int", "size": "int", "state": "string", "price": price}
    (tmp_path / "feed/a.avro").write_bytes(avro_of(kinds, *rows))
    text = proposed(tmp_path)
    assert "in_set: {column: state, value_set: [a, b]}" in text
    assert "{column: size, value_set" not in text, "they are numbers"
    assert "# decide: price was from 0.00 to 2.25." in text


def test_the_bounds_of_a_column_are_exact(tmp_path: Path) -> None:
    rows = pa.table({
        "id": [1, 2, 3], "n": [-(2**63), 0, 2**63 - 1],
        "share": [-0.25, float("nan"), 1e300], "odd": [float("nan")] * 3,
        "price": pa.array(map(Decimal, ["0.01", "1000000.01", "99999999999999999.99"]), pa.decimal128(30, 2)),
    })  # fmt: skip
    (tmp_path / "feed").mkdir()
    pq.write_table(rows, tmp_path / "feed/a.parquet")
    text = proposed(tmp_path)
    assert "# decide: n was from -9223372036854775808 to 9223372036854775807." in text
    assert "# decide: price was from 0.01 to 99999999999999999.99." in text
    assert "# decide: share was from -0.25 to 1e+300." in text
    assert "# decide: odd was" not in text


def test_without_a_key_nothing_is_proposed(tmp_path: Path) -> None:
    for content in ("a,b\n1,x\n1,x\n", "a,b\n1,\n,2\n", "share\n0.5\n0.25\n"):
        assert proposed(tmp_path, (DAY_1, content)) == ""


def test_rules_only_warn_and_state_their_evidence(tmp_path: Path) -> None:
    rows = "".join(f'{number},"{state}",{number * 2}\n' for number, state in enumerate(['a: "" #', "b\nc"] * 2))
    text = proposed(tmp_path, (DAY_1, f"id,state,price\n{rows}"))
    rules = yaml.safe_load(text)["expectations"]
    in_set = next(rule for rule in rules if "expect_column_values_to_be_in_set" in rule)
    assert in_set["expect_column_values_to_be_in_set"]["value_set"] == ['a: " #', "b\nc"]
    assert {rule["action"] for rule in rules} == {"warn", "fail"}
    assert "# decide: price was from 0 to 6" in text

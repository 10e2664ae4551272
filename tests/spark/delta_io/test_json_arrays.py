"""A JSON array gives the same bronze rows as its elements do as lines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import JSON_ARRAY, FileFact
from millrace_spark.delta_io.landing_reads import BLOCK_START, invalid_array_in, read_landing
from millrace_spark.transforms.records import with_line_position
from tests.support.documents.specs import bronze_spec
from tests.support.examples import many, settings_for

KINDS = {"name": "string", "amount": "int", "day": "date", "ratio": "double", "price": "decimal(38,9)"}
SPEC = bronze_spec(
    source={"landing": "orders", "path": ".", "format": "json"},
    columns={name: {"type": kind} for name, kind in KINDS.items()},
)
LONG = "12345678901234567890.123456789012345678901234567890"

FIELDS = st.sampled_from([*KINDS, "colour", "Amount", "día", "a]b", 'quo"te'])
NUMBERS = st.sampled_from([LONG, "1e400", "-0", "-0.0", "1E-7", "9" * 400, "1.10", "NaN"])
ODD_TEXT = st.sampled_from(["]", "}", '"', "\\", "[{", "},{", "\n", "\u2028", "\U0001f600", "\ud83d", "Málaga", ""])
TEXTS = st.builds(json.dumps, st.text() | ODD_TEXT, ensure_ascii=st.booleans()).filter(
    lambda text: text.encode(errors="ignore").decode() == text
)
SCALARS = st.sampled_from(["null", "true", "7", '"8"', '"2013-02-31"']) | NUMBERS | TEXTS


def written(parts: list[str], brackets: str, blank: str) -> str:
    return f"{brackets[0]}{blank}{f'{blank},{blank}'.join(parts)}{blank}{brackets[1]}"


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects as text, whose fields may come twice."""
    pair = st.builds(lambda name, value: f"{json.dumps(name)} : {value}", FIELDS, values)
    return st.builds(written, st.lists(pair, max_size=5), st.just("{}"), st.sampled_from(["", " "]))


def arrays(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(written, st.lists(values, max_size=3), st.just("[]"), st.sampled_from(["", " "]))


VALUES = st.recursive(SCALARS, lambda inner: objects(inner) | arrays(inner), max_leaves=4)
RECORDS = many(objects(VALUES) | SCALARS, 80, 120)


def rows_of(spark: SparkSession, landing: Path, name: str, text: str) -> list[dict[str, Any]]:
    """The bronze rows of one file, in their order, with their place in it."""
    path, place = landing / name, LocalLanding(str(landing))
    path.write_text(text)
    file = inspect(FileFact(path=name, size=path.stat().st_size, mtime_ns=1), place, SPEC)
    assert file.defect == ""
    assert (file.layout == JSON_ARRAY) == name.startswith("array")
    records = with_line_position(read_landing(spark, SPEC, place, (file,)))
    # A day as text: Spark knows days before the year 1, which Python does not. NaN is not equal to itself.
    shown = records.withColumns({"day": F.col("day").cast("string"), "ratio": F.col("ratio").cast("string")})
    return [row.asDict() for row in shown.drop(SOURCE_FILE, BLOCK_START).orderBy("_position").collect()]


@given(records=RECORDS, blank=st.sampled_from(["", " ", "\n", "\r\n\t"]))
@settings_for(1)
def test_an_array_gives_the_rows_of_its_elements_as_lines(spark: SparkSession, records: list[str], blank: str) -> None:
    with TemporaryDirectory() as folder:
        lines = rows_of(spark, Path(folder), "lines.json", "".join(f"{line}\n" for line in ['{"amount": 1}', *records]))
        array = rows_of(spark, Path(folder), "array.json", written(['{"amount": 1}', *records], "[]", blank))
    assert len(lines) == len(records) + 1
    assert array == lines


def test_no_digit_of_a_number_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    (row,) = rows_of(spark, tmp_path, "array.json", f'[{{"name": {LONG}, "colour": {LONG}}}]')
    assert math.isclose(float(row["name"]), float(LONG))
    assert row == rows_of(spark, tmp_path, "lines.json", f'{{"name": {LONG}, "colour": {LONG}}}\n')[0]
    (row,) = rows_of(spark, tmp_path, "array.json", '[{"price": 12345678901234567890.123456789, "price": 1.10}]')
    assert str(row["price"]) == "1.100000000", "the last one counts"
    (row,) = rows_of(spark, tmp_path, "array.json", f"[{LONG}]")
    assert row["_corrupt_record"] == LONG
    assert rows_of(spark, tmp_path, "array.json", "[ ]\n") == [], "an empty array has no records"


def test_an_array_that_breaks_after_it_was_looked_at_stops_the_read_and_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "array.json").write_text('[{"amount": 1},')
    file = FileFact(path="array.json", size=15, mtime_ns=1, layout=JSON_ARRAY)
    with pytest.raises(Exception, match=r"not one sound JSON array: array\.json") as failed:
        read_landing(spark, SPEC, LocalLanding(str(tmp_path)), (file,)).collect()
    assert invalid_array_in(failed.value) == "array.json"

"""A value is stored exactly, or kept in `_rescued`: compared with a model in plain Python that shares no code."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.value_reading import ValueReading
from millrace_spark.transforms.record_parts import RecordColumns
from millrace_spark.transforms.records import CORRUPT, RECORD, RESCUED, parse_columns, parse_json
from millrace_spark.transforms.values.exact_values import exact
from millrace_spark.transforms.values.java_functions import with_java_functions
from tests.support.examples import few_or_many, many, settings_for
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE

BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
DECIMALS = {"decimal(10,2)": (10, 2), "decimal(38,10)": (38, 10), "decimal(18,0)": (18, 0)}
KINDS = ("string", "boolean", *BITS, *DECIMALS, "float", "double", "date", "timestamp")
COLUMNS = {f"c{at}": kind for at, kind in enumerate(KINDS)}

TRUE, FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
DAY = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](.*?))?\s*")
CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)? ?(Z|UTC|[+-]\d\d:\d\d)?")


def number_of(text: str) -> Decimal | None:
    return Decimal(text.strip()) if NUMBER.fullmatch(text) else None


def whole(text: str, bits: int) -> int | None:
    number = number_of(text)
    if number is None or (number and abs(number.adjusted()) > 50) or number != number.to_integral_value():
        return None
    return int(number) if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def with_scale(text: str, digits: int, scale: int) -> Decimal | None:
    number = number_of(text)
    if number is None:
        return None
    try:
        scaled = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=200))
    except InvalidOperation:
        return None
    return scaled if scaled == number and abs(scaled) < Decimal(10) ** (digits - scale) else None


def floating(text: str, kind: type[Any]) -> float | None:
    """The nearest value, if it gives the text again when it is written with as many digits."""
    special = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}.get(text.strip().lower().lstrip("+-"))
    if special is not None and not (math.isnan(special) and text.strip()[0] in "+-"):
        return -special if text.strip().startswith("-") else special
    number = number_of(text)
    if number is None or abs(number.adjusted()) > 400:
        return None if number is None or number else float(text.strip())
    with np.errstate(over="ignore", under="ignore"):
        nearest = kind(text.strip())
    if np.isinf(nearest) or bool(nearest) is not bool(number):
        return None
    written = Context(prec=len(number.as_tuple().digits), rounding=ROUND_HALF_EVEN).plus(Decimal(float(nearest)))
    return float(nearest) if number in (written, Decimal(str(nearest))) else None


def moment(text: str) -> tuple[datetime, timedelta] | None:
    """The time on the clock, and how far that clock is ahead of UTC."""
    found = DAY.fullmatch(text)
    clock = CLOCK.fullmatch(found[4] or "0") if found else None
    if not (found and clock) or (clock[5] and not clock[2]) or len((clock[4] or "").rstrip("0")) > 6:
        return None
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
    micros = int((clock[4] or "").ljust(6, "0")[:6])
    is_utc = clock[5] in (None, "Z", "UTC")
    zone = timedelta() if is_utc else timedelta(hours=int(clock[5][1:3]), minutes=int(clock[5][4:6]))
    try:
        local = datetime(int(found[1]), int(found[2]), int(found[3]), hour, minute, second, micros)  # noqa: DTZ001
    except ValueError:
        return None
    return local, -zone if (clock[5] or "").startswith("-") else zone


def instant(text: str) -> datetime | None:
    read = moment(text)
    try:
        return read[0] - read[1] if read else None
    except OverflowError:
        return None


def day(text: str) -> date | None:
    read = moment(text)
    return read[0].date() if read and not read[1] and read[0].time() == datetime.min.time() else None


def expected(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    if kind == "boolean":
        return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}.get(text.strip().lower())
    if kind in BITS:
        return whole(text, BITS[kind])
    if kind in DECIMALS:
        return with_scale(text, *DECIMALS[kind])
    if kind in ("float", "double"):
        return floating(text, np.float32 if kind == "float" else np.float64)
    return instant(text) if kind == "timestamp" else day(text)


DIGITS = st.text("0123456789", max_size=22)
FEW_DIGITS = st.text("0123456789", max_size=3)
NUMBERS = st.builds(
    "{}{}{}{}{}{}".format,
    *(st.sampled_from(["", "", "-", "+", " "]), DIGITS | FEW_DIGITS, st.sampled_from(["", ".", ",", ".00"])),
    *(FEW_DIGITS | DIGITS, st.sampled_from(["", "", "0", "e5", "E-3", "e-400", "e400", "d", "f", " "]), st.just("")),
)
DAYS = st.sampled_from(
    ["2024-06-30", "2024-6-3", "0001-01-01", "9999-12-31", "0000-01-01", "10000-01-01", "2024-02-30"]
)
DAYS |= st.dates().map(str)
CLOCKS = st.builds(
    "{}{}{}{}".format,
    *(
        st.sampled_from([" ", "T", "T", " to "]),
        st.times().map(str) | st.sampled_from(["00:00:00", "0:00", "7", "23:30"]),
    ),
    *(
        st.sampled_from(["", "", ".1234567", ".000", "000"]),
        st.sampled_from(["", "", "Z", " UTC", "+00:00", "+02:00", "-11:30", " x", " BST", " Europe/Berlin"]),
    ),
)
TIMES = st.builds("{}{}".format, DAYS, st.just("") | CLOCKS)
ODD = st.sampled_from(
    [
        "20089", "202501", "18:03:20", "T07:15", "2024", "2024-06", "1735689600000", "10d", "0x1p3", "1e400",
        "3.5e38", "NaN", "nan", "-Infinity", "inf", "true", "YES", "0", "1", "2024-06-30T12:00Z", "-0.0", "1.9",
        "19.999", "0.004", "9007199254740993", "0.30000000000000004", "1.000000000000000056e-01", "16777217",
        "9223372036854775808", "1e999999999", "1e-999999999", "12,5", "1.234,56", "null", "None", "x",
        "-0e5", "-0.000000000000000000e+00", "\uff11\uff12", "\u0663.\u0665",
    ]
)  # fmt: skip
TEXTS = st.one_of(NUMBERS, NUMBERS, TIMES, TIMES, ODD, st.text("0123456789+-.eE:TZ /,dfxXnaNi\t", max_size=12))


def same(stored: Any, value: Any) -> bool:
    return repr(stored) == repr(value) if isinstance(value, float) else bool(stored == value)


def require_exact(texts: list[str], rows: list[Any]) -> None:
    """Each text is stored as what it means in the type, or is null there and in `_rescued`."""
    assert len(rows) == len(texts)
    for text, row in zip(texts, rows, strict=True):
        values = {name: expected(text, kind) for name, kind in COLUMNS.items()}
        for name, value in values.items():
            assert same(row[name], value), (text, COLUMNS[name], row[name], value)
        lost = {name: text for name, value in values.items() if value is None}
        assert json.loads(row[RESCUED] or "{}") == lost, text


@few_or_many(1, 40)
def test_a_text_is_stored_as_what_it_says_or_rescued(spark: SparkSession, examples: int) -> None:
    @given(texts=many(TEXTS, 150, 200))
    @settings_for(examples)
    def check(texts: list[str]) -> None:
        columns = RecordColumns(COLUMNS, {})
        frame = spark.createDataFrame([(text,) for text in texts], "text string").coalesce(1)
        received = frame.select(
            *(F.col("text").alias(name) for name in COLUMNS), F.lit(None).cast("string").alias(CORRUPT)
        )
        require_exact(texts, parse_columns(received, columns, {}).collect())
        lines = [(json.dumps(dict.fromkeys(COLUMNS, text)),) for text in texts]
        records = spark.createDataFrame(lines, f"{RECORD} string").coalesce(1)
        require_exact(
            texts, parse_json(records, RecordColumns(COLUMNS, {name: name for name in COLUMNS}), "exact").collect()
        )

    check()


def test_a_text_with_a_comma_is_a_number_and_no_other_text_is(spark: SparkSession) -> None:
    reading = ValueReading(decimal_comma=True, null_values=("-",))
    kinds = {"price": "decimal(9,2)", "ratio": "double", "ok": "boolean", "of": "struct<ratio:double,ok:boolean>"}
    columns = RecordColumns(kinds, {name: name for name in kinds}, dict.fromkeys(kinds, reading))
    numbers = {"1.234,5": 1234.5, " -0,5 ": -0.5, "NaN": math.nan, "-Infinity": -math.inf, "-": None}
    others = ("\uff11,\uff15", "1.5", "\uffff5", "\uffff\uffff5", "\uffff-", "nano")
    expected = {**numbers, **dict.fromkeys(others, None)}
    records = [{"price": text, "ratio": text, "ok": True, "of": {"ratio": text, "ok": True}} for text in expected]
    of_json = spark.createDataFrame([(json.dumps(record),) for record in records], f"{RECORD} string").coalesce(1)
    lines = [
        (text, text, "true", json.dumps(record["of"]), None) for text, record in zip(expected, records, strict=True)
    ]
    of_csv = spark.createDataFrame(lines, f"price string, ratio string, ok string, of string, {CORRUPT} string")
    for frame in (parse_columns(of_csv.coalesce(1), columns, {}, list(kinds)), parse_json(of_json, columns, "exact")):
        for (text, number), row in zip(expected.items(), frame.collect(), strict=True):
            price = number if number is not None and math.isfinite(number) else None
            assert row["price"] == price, text
            assert all(same(ratio, number) for ratio in (row["ratio"], row["of"]["ratio"])), (text, row)
            assert (row["ok"], row["of"]["ok"]) == (True, True)
            lost = {"price", "ratio", "of.ratio"} if text in others else {"price"} if number is not price else set()
            assert json.loads(row[RESCUED] or "{}") == dict.fromkeys(lost, text)


def test_a_time_that_the_clock_of_its_zone_skips_is_none(spark: SparkSession) -> None:
    patterns = ("yyyy-MM-dd HH:mm VV", "yyyy-MM-dd'T'HH VV", "d MMM yyyy h:mm a VV")
    times = {
        "2024-03-31 02:30 Europe/Berlin": None,
        "2024-03-31 01:59 Europe/Berlin": "2024-03-31 00:59:00",
        "2024-03-31 03:00 europe/berlin": "2024-03-31 01:00:00",
        "2024-03-31T02 Europe/Berlin": None,
        "2024-03-31T02 Europe/Athens": "2024-03-31 00:00:00",
        "31 Mar 2024 2:30 AM Europe/Berlin": None,
        "31 mar 2024 2:30 pm Europe/Berlin": "2024-03-31 12:30:00",
        "2024-03-31 02:30 +01:00": "2024-03-31 01:30:00",
        "2024-10-27 02:30 Europe/Berlin": "2024-10-27 00:30:00",
    }
    texts = with_java_functions(spark.createDataFrame([(text,) for text in times], "text string").coalesce(1))
    reading = ValueReading(format=patterns)
    read = texts.select(exact(F.col("text"), "string", "timestamp", reading).cast("string")).collect()
    assert [value for (value,) in read] == list(times.values())


def test_a_number_of_many_digits_takes_no_longer_than_another_text(spark: SparkSession) -> None:
    reading = ValueReading(round="half_up")
    texts = spark.createDataFrame([("1" * 3_000_000,)], "text string")
    assert texts.select(exact(F.col("text"), "string", "decimal(38,2)")).collect() == [(None,)]
    tiny = spark.range(20_000).select(F.concat(F.lit("-1e-4"), F.col("id") + 900_000).alias("text"))
    rounded = tiny.select(exact(F.col("text"), "string", "decimal(9,2)", reading).alias("value"))
    assert rounded.groupBy("value").count().collect() == [(Decimal("0.00"), 20_000)]


DOUBLES = [1.9, 2.0, -0.0, 0.1, 0.30000000000000004, 19.99, 19.999, 1e15, 2.0**53, 2.0**63, -(2.0**63), 3.5e38, 1e300]
NUMBERS_OF_FILES: dict[str, list[Any]] = {
    "bigint": [0, 1, -1, 127, 128, 32768, 70000, 2**24 + 1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "double": [*DOUBLES, math.nan, math.inf, -math.inf],
    "decimal(38,4)": [*map(Decimal, ("0.0000", "1.0000", "19.9900", "19.9990", "12345678901234567.8901"))],
}
"""Type of Parquet or Avro -> numbers."""


def held(number: Any, kind: str) -> Any:
    """What a column of a type holds of a number; None if it would hold another one."""
    text = str(number)
    if kind in ("date", "timestamp"):
        return None
    if kind == "boolean":
        return {"1": True, "0": False}.get(text)
    if kind in BITS:
        return whole(f"{Decimal(number):f}", BITS[kind]) if math.isfinite(number) else None
    if kind in DECIMALS:
        return with_scale(text, *DECIMALS[kind])
    if isinstance(number, float) and not math.isfinite(number):
        return number
    float_type = np.float32 if kind == "float" else np.float64
    with np.errstate(over="ignore"):
        nearest = float(float_type(number))
    return nearest if math.isfinite(nearest) and Decimal(number) == Decimal(nearest) else floating(text, float_type)


@pytest.mark.parametrize("received", NUMBERS_OF_FILES)
def test_a_number_of_a_file_is_stored_as_what_it_is_or_rescued(spark: SparkSession, received: str) -> None:
    kinds = {name: kind for name, kind in COLUMNS.items() if kind != "string"}
    numbers = NUMBERS_OF_FILES[received]
    frame = spark.createDataFrame([(number,) for number in numbers], f"number {received}").coalesce(1)
    file = frame.select(*(F.col("number").alias(name) for name in kinds), F.lit(None).cast("string").alias(CORRUPT))
    for number, row in zip(numbers, parse_columns(file, RecordColumns(kinds, {}), {}).collect(), strict=True):
        values = {name: held(number, kind) for name, kind in kinds.items()}
        for name, value in values.items():
            assert same(row[name], value), (number, kinds[name], row[name], value)
        assert json.loads(row[RESCUED] or "{}").keys() == {name for name, value in values.items() if value is None}

"""The types of columns whose values have no parts: what each is in Spark, in Delta, for DuckDB and in Avro."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE_NUMBER, DECIMAL, FLOATING = "whole number", "decimal", "floating"
TIME, TEXT, TRUTH, BYTES = "time", "text", "truth", "bytes"


@dataclass(frozen=True)
class ScalarType:
    """What a type is, and what it is called elsewhere.

    Attributes:
        values: what its values are, such as `WHOLE_NUMBER`.
        bits: the size of a whole number.
        digits: how many decimal digits it has of any number, if it is a floating one.
        literal: how a value of it is written in Spark SQL: what a time begins with, and a whole number ends with.
        delta: its name in Delta, if another one.
        avro: the types of Avro whose values it has.
        duckdb: the types of DuckDB whose values it has; of times those whose names begin like this.
        sqlglot: its name for sqlglot, if another one.
        misnomers: names that it has in other systems.
        is_stored: whether a column of a spec can have it; otherwise it is only read, or computed on the way.
    """

    values: str
    bits: int = 0
    digits: int = 0
    literal: str = ""
    delta: str = ""
    avro: tuple[str, ...] = ()
    duckdb: tuple[str, ...] = ()
    sqlglot: str = ""
    misnomers: tuple[str, ...] = ()
    is_stored: bool = True


TYPES = {
    "string": ScalarType(TEXT, avro=("string", "enum"), sqlglot="TEXT", misnomers=("text", "varchar")),
    "boolean": ScalarType(TRUTH, avro=("boolean",), duckdb=("BOOLEAN",), misnomers=("bool",)),
    "tinyint": ScalarType(WHOLE_NUMBER, bits=8, literal="Y", delta="byte", duckdb=("TINYINT",), misnomers=("byte",)),
    "smallint": ScalarType(
        WHOLE_NUMBER, bits=16, literal="S", delta="short", duckdb=("SMALLINT", "UTINYINT"), misnomers=("short",)
    ),
    "int": ScalarType(
        WHOLE_NUMBER, bits=32, delta="integer", avro=("int",), duckdb=("INTEGER", "USMALLINT"), misnomers=("integer",)
    ),
    "bigint": ScalarType(
        WHOLE_NUMBER,
        bits=64,
        literal="L",
        delta="long",
        avro=("long",),
        # DuckDB gives HUGEINT to JSON numbers if some are negative; `wide_numbers` looks whether a bigint holds them.
        duckdb=("BIGINT", "UINTEGER", "HUGEINT"),
        misnomers=("long",),
    ),
    "float": ScalarType(FLOATING, digits=6, avro=("float",), duckdb=("FLOAT",), misnomers=("real",)),
    "double": ScalarType(FLOATING, digits=15, avro=("double",), duckdb=("DOUBLE",)),
    "decimal": ScalarType(DECIMAL, misnomers=("numeric", "number")),
    "date": ScalarType(TIME, literal="DATE", duckdb=("DATE",)),
    "timestamp": ScalarType(
        TIME, literal="TIMESTAMP", duckdb=("TIMESTAMP",), sqlglot="TIMESTAMPTZ", misnomers=("datetime",)
    ),
    "timestamp_ntz": ScalarType(TIME, literal="TIMESTAMP_NTZ", is_stored=False),
    "binary": ScalarType(BYTES, avro=("bytes", "fixed"), duckdb=("BLOB", "GEOMETRY")),
}
"""Type in Spark, which is that in specs -> what it is; a decimal without its digits."""


def types_of(*values: str) -> tuple[str, ...]:
    """Return the types that columns can have and whose values are of one of these kinds.

    >>> types_of(FLOATING, DECIMAL)
    ('float', 'double', 'decimal')
    """
    return tuple(name for name, kind in TYPES.items() if kind.values in values and kind.is_stored)


WHOLE_NUMBERS, TIMES = types_of(WHOLE_NUMBER), types_of(TIME)
NUMBERS = types_of(WHOLE_NUMBER, DECIMAL, FLOATING)
SIMPLE_TYPES = types_of(WHOLE_NUMBER, FLOATING, TIME, TEXT, TRUTH, BYTES)
"""The types that a spec states by their name alone."""

DECIMAL_PATTERN = r"decimal\(\d{1,2},\d{1,2}\)"
"""How a spec states a decimal: the digits in all, and those after the point."""

TIMES_READ = (*TIMES, "timestamp_ntz")
"""The dates and times that Spark reads or computes."""

TEXTUAL = frozenset((*WHOLE_NUMBERS, *TIMES, "string"))
"""The types whose equal values have equal texts, and which Delta can compare with literals."""


def base_of(kind: str) -> str:
    """Return a type without its digits.

    >>> base_of("decimal(10,2)"), base_of("array<decimal(10,2)>")
    ('decimal', 'array<decimal')
    """
    return kind.partition("(")[0]

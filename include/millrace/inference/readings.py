"""Propose how the values of a column are read, where all delivered values fit exactly one way of reading them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from zoneinfo import available_timezones

import duckdb
from duckdb import ColumnExpression
from duckdb.sqltypes import DuckDBPyType

from millrace.contracts.spec.column_types import DECIMAL, FLOATING, TIMES, base_of, types_of
from millrace.contracts.spec.nested_type import NestedType, is_nested, nested_type, scalar_types
from millrace.inference.delivered_rows import identifier, quoted
from millrace.inference.guess import DIGITS_OF_DOUBLE, decimal_of

_DAY_NUMBER, _ISO_DAY = "yyyyMMdd", "yyyy-MM-dd"
_DAYS = {
    "dd.MM.yyyy": (r"\d\d\.\d\d\.\d{4}", "%d.%m.%Y"),
    "dd/MM/yyyy": (r"\d\d/\d\d/\d{4}", "%d/%m/%Y"),
    "MM/dd/yyyy": (r"\d\d/\d\d/\d{4}", "%m/%d/%Y"),
    "yyyy/MM/dd": (r"\d{4}/\d\d/\d\d", "%Y/%m/%d"),
    _DAY_NUMBER: (r"(19|20)\d{6}", "%Y%m%d"),
    _ISO_DAY: (r"\d{4}-\d\d-\d\d", "%Y-%m-%d"),
}
"""Pattern of Spark for a day -> regular expression, pattern of DuckDB."""

_OF_DAY = {" HH:mm": (r" \d\d:\d\d", " %H:%M"), " HH:mm:ss": (r" \d\d:\d\d:\d\d", " %H:%M:%S")}
_ZONE = " VV"
_TIMES = {
    f"{day}{time}{zone}": (f"{_DAYS[day][0]}{of_time}{' [^ ]+' if zone else ''}", f"{_DAYS[day][1]}{of_duckdb}")
    for day, (time, (of_time, of_duckdb)), zone in product(_DAYS, _OF_DAY.items(), ("", _ZONE))
    # A run reads the times of ISO 8601 without a format, but for those with the name of a zone.
    if day != _DAY_NUMBER and (zone or day != _ISO_DAY)
}
_FORMATS = {day: _DAYS[day] for day in _DAYS if day != _ISO_DAY} | _TIMES
"""Pattern of Spark -> regular expression, pattern of DuckDB for what stands before a zone."""

_ZONE_NAMES = sorted({"UTC", "GMT"} | {name for name in available_timezones() if "/" in name})
_ZONES = f"SET VARIABLE zones = [{', '.join(map(quoted, _ZONE_NAMES))}]"
"""The statement after which DuckDB knows the names of zones; short ones, such as CET, mean others elsewhere."""


def _is_time(pattern: str, text: str) -> str:
    """Return the SQL of whether a text is a day or a time of a pattern; `_ZONES` was executed before."""
    is_zone = f" AND list_contains(getvariable('zones'), split_part({text}, ' ', 3))" if pattern.endswith(_ZONE) else ""
    return f"regexp_full_match({text}, '{_FORMATS[pattern][0]}') AND {_time_of(pattern, text)} IS NOT NULL{is_zone}"


def _time_of(pattern: str, text: str) -> str:
    """Return the SQL of the time that a text of a pattern has, in its own zone; null if there is no such one."""
    before_zone = f"regexp_replace({text}, ' [^ ]+$', '')" if pattern.endswith(_ZONE) else text
    return f"try_strptime({before_zone}, '{_FORMATS[pattern][1]}')"


_NO_VALUE = (r"\N", "NULL", "null", "None", "NA", "N/A", "n/a", "-")
"""Texts that may stand for no value. Only one that several rows have is taken for that."""

_LIST = ", ".join(f"'{text}'" for text in _NO_VALUE)

_NUMBER = r"[+-]?(0|[1-9]\d*)"
_INSTANT = r"\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?"
_SPELLINGS = {
    "whole": _NUMBER,
    "number": _NUMBER + r"(\.\d+)?",
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp": _INSTANT,
    "comma": r"[+-]?(0|[1-9]\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d+)?",
    "English": r"[+-]?(0|[1-9]\d*|[1-9]\d{0,2}(,\d{3})+)(\.\d+)?",
}
"""Kind of value -> its regular expression. Numbers with leading zeros are codes."""

_FIRST_SECOND, _LAST_SECOND = 631_152_000, 4_102_444_800
"""The beginning of 1990 and the end of 2099, in seconds since 1970."""
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS_OF_DAY = 86_400

_TIME_WORDS = re.compile(r"ts|at|on|when|since|until|created|updated|modified|changed|.*(time|stamp|date|day)")
_FEW_ROWS = 1000

_DAY_WORDS = re.compile(r".*(date|day)")


@dataclass(frozen=True)
class FieldReading:
    """A column of a table, and how it is read.

    Attributes:
        type: its type.
        value: its value, as DuckDB's SQL over the delivered rows.
        settings: the settings of its spec that say how its values are read.
    """

    type: str
    value: str
    settings: dict[str, object] = field(default_factory=dict)


def readings_of(
    reader: duckdb.DuckDBPyConnection, relation: str, columns: Mapping[str, str], types: Mapping[str, str]
) -> dict[str, FieldReading]:
    """Return the reading of each field.

    Args:
        reader: DuckDB.
        relation: the delivered rows, as its SQL.
        columns: field -> its column of the relation.
        types: field -> the type that its values have as they are.
    """
    reader.execute(_ZONES)
    reader.execute(f"CREATE TEMP TABLE few_rows AS SELECT * FROM {relation} LIMIT {_FEW_ROWS}")
    received = reader.table("few_rows")
    # A few rows show of most columns that nothing fits.
    steps = ("few_rows", relation) if len(received) == _FEW_ROWS else ("few_rows",)
    kinds = {name: str(kind) for name, kind in zip(received.columns, received.types, strict=True)}
    readings = {name: FieldReading(types[name], identifier(column)) for name, column in columns.items()}
    unclear = dict[str, _Values]()
    for name, column in columns.items():
        is_text = types[name] == "string" and kinds[column] in ("VARCHAR", "JSON")
        if is_text or types[name] in ("int", "bigint"):
            text = "{} ->> '$'" if kinds[column] == "JSON" else "CAST({} AS VARCHAR)"
            unclear[name] = _Values(f"({text.format(identifier(column))})", _kinds_for(name, is_text))
    for rows in steps:
        unclear = {name: values for name, values in unclear.items() if values.kinds}
        if unclear:
            measures = ", ".join(measure for values in unclear.values() for measure in _measures(values))
            found = iter(reader.execute(f"SELECT {measures} FROM {rows}").fetchone() or ())
            unclear = {name: values.measured(*islice(found, 6)) for name, values in unclear.items()}
    readings |= {name: reading for name, values in unclear.items() if (reading := _reading(values))}
    for name, column in columns.items():
        if is_nested(types[name]):
            readings[name] = _nested_reading(reader, steps, column, types[name])
    return readings


_Path = tuple[str | None, ...]
"""The way to a part of a value: names of fields, and None for the elements of a list."""

_OF_PARTS = {"epoch": TIMES, "format": TIMES, "decimal_comma": types_of(DECIMAL, FLOATING)}
"""Setting of a column -> the types of the parts that it is for, all of them."""


def _nested_reading(reader: duckdb.DuckDBPyConnection, steps: Sequence[str], column: str, kind: str) -> FieldReading:
    """Return how a field with parts is read: a setting is proposed if it fits all parts that it is for."""
    parts = dict(_parts(kind, reader.table("few_rows").select(ColumnExpression(column)).types[0]))
    found = dict[_Path, FieldReading]()
    for path, (part, type_of_duckdb) in parts.items():
        is_text = part == "string" and type_of_duckdb in ("VARCHAR", "JSON")
        if is_text or part in ("int", "bigint"):
            text = "(v ->> '$')" if type_of_duckdb == "JSON" else "(CAST(v AS VARCHAR))"
            name = next(step for step in reversed((column, *path)) if step is not None)
            values = _Values(text, _kinds_for(name, is_text))
            for rows in steps:
                if values.kinds:
                    sql = f"SELECT {', '.join(_measures(values))} FROM {_values_at(path, column, rows)}"
                    values = values.measured(*(reader.execute(sql).fetchone() or ()))
            if (reading := _reading(values)) and len(reading.settings) == 1:
                found[path] = reading
    types, settings = dict[_Path, str](), dict[str, object]()
    for setting, fitting in _OF_PARTS.items():
        read = {path: reading for path, reading in found.items() if setting in reading.settings}
        others = {base_of(each) for path in parts.keys() - read for each in scalar_types(parts[path][0])}
        ways = {reading.settings[setting] for reading in read.values()}
        if len(ways) == 1 and others.isdisjoint(fitting) and not (setting == "format" and "epoch" in settings):
            settings[setting] = ways.pop()
            types |= {path: reading.type for path, reading in read.items()}
    return FieldReading(_with_types(kind, types), identifier(column), settings)


def _parts(kind: str, type_of_duckdb: DuckDBPyType, path: _Path = ()) -> Iterator[tuple[_Path, tuple[str, str]]]:
    """Yield the way to each part without parts, with its type and that of DuckDB."""
    children = type_of_duckdb.children if type_of_duckdb.id in ("struct", "list") else []
    of_duckdb = {name: child for name, child in children if isinstance(child, DuckDBPyType)}
    if not is_nested(kind) or not of_duckdb:
        yield path, (kind, str(type_of_duckdb))
        return
    for name, part in nested_type(kind).parts.items():
        if type_of_duckdb.id == "struct":
            yield from _parts(part, of_duckdb[name], (*path, name))
        else:
            yield from _parts(part, of_duckdb["child"], (*path, None))


def _values_at(path: _Path, column: str, rows: str) -> str:
    """Return the values of a part as DuckDB's SQL, in a column `v`."""
    values = f"(SELECT {identifier(column)} AS v FROM {rows})"
    for step in path:
        values = f"(SELECT {'unnest(v)' if step is None else f'struct_extract(v, {quoted(step)})'} AS v FROM {values})"
    return values


def _with_types(kind: str, types: Mapping[_Path, str], path: _Path = ()) -> str:
    """Return a type with other types of some of its parts."""
    if not is_nested(kind):
        return types.get(path, kind)
    nested = nested_type(kind)
    parts = {
        name: _with_types(part, types, (*path, name if nested.kind == "struct" else None))
        for name, part in nested.parts.items()
    }
    return str(NestedType(nested.kind, parts))


@dataclass(frozen=True)
class _Values:
    """The values of a field.

    Attributes:
        text: a value as text, as DuckDB's SQL.
        kinds: what all of them can be, but for `no_values`.
        no_values: the texts among them that may stand for no value.
        rows: the number of rows with such a text.
        has_comma: whether any other has a comma.
        digits: the most digits before the point or the last comma.
        scale: the most digits after it.
    """

    text: str
    kinds: tuple[str, ...]
    no_values: tuple[str, ...] = ()
    rows: int = 0
    has_comma: bool = False
    digits: int = 0
    scale: int = 0

    def measured(
        self, bits: int | None, no_values: list[str] | None, rows: int, has_comma: bool | None, *digits: int | None
    ) -> _Values:
        """Return the values with the results of `_measures`; if none is left to look at, they can be everything."""
        kinds = tuple(kind for bit, kind in enumerate(self.kinds) if bits is None or bits >> bit & 1)
        whole, scale = (number or 0 for number in digits)
        return _Values(self.text, kinds, tuple(no_values or ()), rows, bool(has_comma), whole, scale)


def _kinds_for(name: str, is_text: bool) -> tuple[str, ...]:
    """Return what the values of a field with this name may be taken for."""
    words = [word.lower() for word in re.split(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])", name)]
    kinds = [*_SPELLINGS, *(pattern for pattern in _FORMATS if pattern != _DAY_NUMBER)] if is_text else []
    kinds += [*_PER_SECOND] if any(map(_TIME_WORDS.fullmatch, words)) else []
    return (*kinds, *(["days", _DAY_NUMBER] if any(map(_DAY_WORDS.fullmatch, words)) else []))


def _condition(kind: str, text: str) -> str:
    """Return the SQL of whether a text is of a kind."""
    number = f"TRY_CAST({text} AS BIGINT)"
    if kind == "days":
        first, last = (seconds // _SECONDS_OF_DAY for seconds in (_FIRST_SECOND, _LAST_SECOND))
        return f"{number} BETWEEN {first} AND {last - 1}"
    if kind in _PER_SECOND:
        factor, exact = _PER_SECOND[kind], f" AND {number} % 1000 = 0" if kind == "ns" else ""
        return f"{number} BETWEEN {_FIRST_SECOND * factor} AND {_LAST_SECOND * factor - 1}{exact}"
    if kind in _FORMATS:
        return _is_time(kind, text)
    is_spelled, of_day = f"regexp_full_match({text}, '{_SPELLINGS[kind]}')", f"try_strptime({text}[:10], '%Y-%m-%d')"
    return f"{is_spelled} AND {of_day} IS NOT NULL" if kind in TIMES else is_spelled


def _measures(values: _Values) -> Iterator[str]:
    """Yield the SQL of what `_Values.measured` takes."""
    text = values.text
    are_kinds = (f"coalesce({_condition(kind, text)}, false)::BIGINT << {bit}" for bit, kind in enumerate(values.kinds))
    bits = " | ".join(f"({is_kind})" for is_kind in are_kinds)
    is_none = f"{text} IN ({_LIST})"
    # Most texts do not begin like a number, and need no regular expression.
    yield f"bit_and(CASE WHEN regexp_matches({text}, '^[+-]?[0-9]') THEN {bits} ELSE 0 END) FILTER (NOT {is_none})"
    yield f"list(DISTINCT {text}) FILTER ({is_none})"
    yield f"count(*) FILTER ({is_none})"
    yield f"bool_or(contains({text}, ',')) FILTER (NOT {is_none})"
    digits = f"regexp_replace({text}, '[^0-9.,]', '', 'g')"
    yield f"max(length(replace(regexp_replace({digits}, '[,.][0-9]*$', ''), '.', ''))) FILTER (NOT {is_none})"
    yield f"max(length(regexp_extract({digits}, '[.,]([0-9]*)$', 1))) FILTER (NOT {is_none})"


def _reading(values: _Values) -> FieldReading | None:
    """Return how a field is read if that is not as its values are; None if nothing or several ways fit."""
    has_value = values.digits > 0
    if not has_value or not values.kinds or len(values.no_values) > 1 or values.rows == 1:
        return None
    settings, text = dict[str, object](), values.text
    for no_value in values.no_values:
        settings, text = {"null_values": no_value}, f"nullif({text}, '{no_value}')"
    for unit in ("days", *_PER_SECOND):
        if unit in values.kinds:
            kind = "date" if unit == "days" else "timestamp"
            return FieldReading(kind, f"TRY_CAST({text} AS BIGINT)", {**settings, "epoch": unit})
    formats = [pattern for pattern in _FORMATS if pattern in values.kinds]
    if len(formats) == 1:
        settings, time = {**settings, "format": formats[0]}, _time_of(formats[0], text)
        is_day = formats[0] in _DAYS
        return FieldReading("date" if is_day else "timestamp", f"CAST({time} AS DATE)" if is_day else time, settings)
    return None if formats else _number_or_time(text, settings, values)


def _number_or_time(text: str, settings: dict[str, object], values: _Values) -> FieldReading | None:
    """Return the reading of texts that are numbers with a decimal comma, or numbers and times but for `null_values`."""
    digits, scale = values.digits, values.scale
    if "comma" in values.kinds and values.has_comma:
        if "English" in values.kinds or (kind := decimal_of(digits, scale)) == "string":
            return None
        value = f"TRY_CAST(replace(replace({text}, '.', ''), ',', '.') AS {kind})"
        return FieldReading(kind, value, {**settings, "decimal_comma": True})
    if not settings:
        return None
    for kind in TIMES:
        if kind in values.kinds:
            # DuckDB casts no time zone without an extension.
            return FieldReading(kind, f"TRY_CAST({text} AS DATE)" if kind == "date" else text, settings)
    kind = "string" if "number" not in values.kinds else decimal_of(digits, scale)
    if "whole" in values.kinds and digits < len(str(2**63)):
        kind = "bigint"
    elif "whole" not in values.kinds and digits + scale <= DIGITS_OF_DOUBLE:
        kind = "double"
    return None if kind == "string" else FieldReading(kind, f"TRY_CAST({text} AS {kind})", settings)

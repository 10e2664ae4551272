"""The functions whose value may be as large as an argument says: `lpad(x, 2000000000)` takes a driver's whole memory.

Each says its size as a number, or as a bound that can be read from the text, and sizes within each other are
multiplied. A column counts as one. What grows with the number of rows alone, as `collect_list` does, is not bounded.

A series, such as `sequence(d, date_add(d, 6))`, has at most as many elements as its text says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.sql.refusal import Refusal
from millrace.sql.spark_text import SPARK_TERMS, parse_spark

MOST = 10_000
"""The largest size: more than a code is padded to, and than the days of 27 years. Spark holds thousands of rows at a
time, and so many such values still fit in the memory of a driver."""

_LENGTHS = frozenset(("array_size", "cardinality", "char_length", "character_length", "len", "length", "size"))
_CALENDAR = {
    **{"month": 12, "quarter": 4, "day": 31, "dayofmonth": 31, "dayofyear": 366, "weekofyear": 53, "dayofweek": 7},
    **{"weekday": 6, "hour": 23, "minute": 59, "second": 59},
}
"""Function -> the greatest value that it has."""

_SECONDS = {"MICROSECOND": 1e-6, "MILLISECOND": 1e-3, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_OF_SPANS = {**_SECONDS, "WEEK": 7 * 86400, "MONTH": 31 * 86400, "QUARTER": 92 * 86400, "YEAR": 366 * 86400}
_OF_STEPS = {**_SECONDS, "WEEK": 7 * 86400, "MONTH": 28 * 86400, "QUARTER": 90 * 86400, "YEAR": 365 * 86400}
"""Unit -> its seconds: in doubt, spans are long and steps are short."""

_TOO_LARGE = 1e10
"""More than any size that Spark takes."""
_MOST_DAYS = 4_000_000
"""More than the calendar has."""

_Span = float | timedelta
"""The distance of two numbers, or of two times."""


def length_of_series(arguments: list[exp.Expr]) -> int | None:
    """Return how many elements a series with these arguments has at most; None if nobody can say it.

    A series by days or longer steps, which counts as `MOST`, ends with the calendar: it fits in a driver's memory.
    """
    if len(arguments) < 2:
        return None
    start, stop, *steps = arguments
    step = steps[0] if steps else None
    if step is None and (first := number_of(start)) is not None:
        if is_length(stop):
            return 1  # an element for each one of a value
        if (greatest := greatest_of(stop)) is not None:
            return greatest + int(abs(first)) + 1
    each = _interval(step, _OF_STEPS) if step is not None else None
    all_days = [MOST] if each and abs(each) >= timedelta(days=1) else []
    goes_up = step is not None and not isinstance(step, exp.Neg)
    if name_of(stop) == "greatest" and len(stop.expressions) == 2 and start in stop.expressions:
        [stop, *_], goes_up = [each for each in stop.expressions if each != start] or [start], True
    ends = [stop]
    if name_of(stop) == "least":
        # Without a step that goes up it may go down without an end.
        ends = stop.expressions if goes_up else []
    lengths = [length for end in ends if (length := _steps_between(start, end, step)) is not None]
    return min((*lengths, *all_days), default=None)


def _steps_between(start: exp.Expr, end: exp.Expr, step: exp.Expr | None) -> int | None:
    if start == end:
        return 1
    span = _span(start, end)
    if isinstance(span, timedelta):
        each = timedelta(days=1) if step is None else _interval(step, _OF_STEPS)
        return int(abs(span) / abs(each)) + 1 if each else None
    number = 1.0 if step is None else number_of(step)
    return int(abs(span / number)) + 1 if span is not None and number else None


def _span(start: exp.Expr, end: exp.Expr) -> _Span | None:
    """Return how far an end is from the start, if the text says it."""
    if (first := _moment(start)) and (last := _moment(end)):
        return last - first
    if (low := number_of(start)) is not None and (high := number_of(end)) is not None:
        return high - low
    if start.this == end and isinstance(start, exp.TsOrDsAdd | exp.DateAdd | exp.DateSub | exp.Sub):
        start, end = end, start
    if end.this != start:
        return None
    number = number_of(added) if isinstance(added := end.args.get("expression"), exp.Expr) else None
    if isinstance(end, exp.TsOrDsAdd | exp.DateAdd | exp.DateSub) and number is not None:
        return timedelta(days=min(abs(number), _MOST_DAYS)) if end.text("unit").upper() == "DAY" else None
    if isinstance(end, exp.Add | exp.Sub):
        return number if number is not None else _interval(end.expression, _OF_SPANS)
    return None


def _interval(node: exp.Expr, units: dict[str, float]) -> timedelta | None:
    if not isinstance(node, exp.Interval):
        return None
    seconds = units.get(node.text("unit").upper().removesuffix("S"))
    number = re.fullmatch(r"-?\d{1,6}", node.text("this"))
    return timedelta(seconds=int(number[0]) * seconds) if number and seconds else None


def _moment(node: exp.Expr) -> datetime | None:
    is_time = isinstance(node, exp.TsOrDsToDate | exp.Date) or (
        isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
    )
    if not is_time or not isinstance(node.this, exp.Literal):
        return None
    try:
        return datetime.fromisoformat(node.this.name).replace(tzinfo=None)
    except ValueError:
        return None


def greatest_of(node: exp.Expr) -> int | None:
    """Return the greatest value that a part of a time has, such as its month; None for anything else."""
    return _CALENDAR.get(name_of(node) or str(node.key))


def number_of(node: exp.Expr) -> float | None:
    """Return the value of a number, or of a calculation with numbers; None for one that is no size of anything."""
    number = _value(node)
    return number if number is not None and abs(number) < _TOO_LARGE else None


def _value(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Literal):
        return None if node.is_string else float(node.name)
    if isinstance(node, exp.Paren | exp.Cast):  # 10L is a cast, too
        return number_of(node.this)
    if isinstance(node, exp.Neg):
        return None if (number := number_of(node.this)) is None else -number
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = number_of(node.this), number_of(node.expression)
        if left is None or right is None:
            return None
        return left * right if isinstance(node, exp.Mul) else left + right * (1 if isinstance(node, exp.Add) else -1)
    return None


def is_length(node: exp.Expr) -> bool:
    """Whether a node is the length of a value, or a number less; or the greatest of lengths and small numbers."""
    if isinstance(node, exp.Sub) and (number_of(node.expression) or 0) > 0:
        return is_length(node.this)
    if name_of(node) in ("greatest", "least"):
        return all(is_length(each) or 0 <= (number_of(each) or MOST + 1) <= MOST for each in node.expressions)
    return name_of(node) in _LENGTHS


def name_of(node: exp.Expr) -> str:
    """Return the name of a function that is a function to sqlglot alone; empty for any other node."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


MOST_OF_VALUE = 1_000_000
"""The largest product of the sizes of functions within each other."""

_SIZED = {
    **{"array_insert": 1, "array_repeat": 1, "format_number": 1, "histogram_numeric": 1, "lpad": 1, "repeat": 1},
    **{"randstr": 0, "rpad": 1, "space": 0, "stack": 0},
}
"""Function -> the place of the argument with the size of its value."""
_SERIES = frozenset(("range", "sequence"))
_FORMATS = frozenset(("format_string", "printf"))
_EXACT = {"approx_count_distinct": (1, 0.001), "count_min_sketch": (1, 0.0001)}
"""Function -> the place of the argument with its error, and the least one: exactness takes memory."""
_STATED = frozenset((*_SIZED, *_SERIES, *_FORMATS, *_EXACT))
_REPLACING = frozenset(("regexp_replace", "replace"))
_REPEATING = frozenset(("array_repeat", "repeat"))
_FOLDS = frozenset(("aggregate", "reduce"))
GROWING = _STATED | _REPLACING | _FOLDS
"""All functions that may make more of their arguments than these hold."""

_JOINING = frozenset(("array", "concat", "concat_ws", "flatten", "map_concat"))
_LENGTH_OF_VALUE = 1000
"""What the length of a value counts by which another one is replaced."""
_FIXES = {
    **dict.fromkeys(_STATED, f"write a number up to {MOST:,}, or least(..., <such a number>)"),
    **dict.fromkeys(_FORMATS, "write the format as a text"),
    **dict.fromkeys(
        _SERIES,
        f"let it end at most {MOST:,} steps after its start, such as sequence(a, greatest(a, least(b, a + 1000))), "
        "with date_add(a, 366) for dates; or sequence(1, size(items))",
    ),
}


def growing(text: str) -> Iterator[Refusal]:
    """Yield why a value of an expression, or of a query, may be larger than what it is made of.

    >>> [refusal.message for refusal in growing("lpad(name, 2000000000)")]
    ['the size in LPAD(name, 2000000000) is 2,000,000,000, and 10,000 is the most']
    >>> texts = ("lpad(id, 10, '0')", "repeat('0', 8 - length(id))", "sequence(a, greatest(a, least(b, a + 9)))")
    >>> [refusal for text in texts for refusal in growing(text)]
    []
    """
    if not (names := GROWING.intersection(re.findall(r"(\w+)`?\s*\(", text.lower()))):
        return
    try:
        trees = [tree for tree in parse_spark(text, SPARK_TERMS) if tree]
    except SqlglotError:
        if names := names - _REPLACING:  # Spark may be able to read it
            message = f"nobody can say how large {', '.join(sorted(names))} becomes in a text of this form"
            yield Refusal(message, "write it in a simpler form, or compute it in a table of its own")
        return
    for tree in trees:
        refusals = [refusal for node in tree.walk() for refusal in _refusals(node)]
        yield from refusals
        if not refusals and (size := _size(tree)) > MOST_OF_VALUE:
            message = f"functions within each other make {size:,} of one, and {MOST_OF_VALUE:,} is the most"
            yield Refusal(message, "make the value longer by one of them only")


def _refusals(node: exp.Expr) -> Iterator[Refusal]:
    name, arguments = name_of(node), node.expressions
    if name in _EXACT:
        place, least = _EXACT[name]
        error = number_of(arguments[place]) if len(arguments) > place else least
        if error is None or error < least:
            yield Refusal(f"{_sql(node)} may take any memory", f"write an error of {least} or more, as a number")
    elif name in _STATED:
        size = _stated_size(name, arguments)
        if size is None:
            yield Refusal(f"nobody can say how large {_sql(node)} becomes", _FIXES[name])
        elif size > MOST:
            yield Refusal(f"the size in {_sql(node)} is {size:,}, and {MOST:,} is the most", _FIXES[name])
    elif name in _FOLDS and len(arguments) > 2 and isinstance(fold := arguments[2], exp.Lambda) and _multiplies(fold):
        fix = "use the value before once, in a function that adds to it"
        yield Refusal(f"{_sql(node)} may make its value a multiple of it with each element", fix)


def _multiplies(fold: exp.Lambda) -> bool:
    """Whether a step of `aggregate` may make a multiple of the value before."""
    before = fold.expressions[0].name.lower() if fold.expressions else ""

    def multiplies(node: exp.Expr) -> bool:
        name, is_inner = name_of(node), node.find_ancestor(exp.Lambda) is not fold
        uses = sum(each.name.lower() == before for each in node.find_all(exp.Identifier))
        if name in _JOINING or isinstance(node, exp.DPipe):
            return uses > 1 or is_inner
        grows = name in _REPEATING or (name in _REPLACING and _size_of_replacement(name, node.expressions) > 1)
        return grows and (uses > 0 or is_inner)

    return any(map(multiplies, fold.this.walk()))


def _size(node: exp.Expr) -> int:
    """Return how many times larger the value of a node may be than the values that it reads."""
    name, arguments = name_of(node), node.expressions
    if name in _REPLACING and len(arguments) > 1:
        return _size(arguments[0]) * _size_of_replacement(name, arguments)
    if name in _REPEATING:
        return _size(arguments[0]) * (_stated_size(name, arguments) or 1)
    sizes = [_size(child) for child in node.iter_expressions()]
    if name == "concat_ws" and arguments:  # its other arguments follow one another
        return sizes[0] * max(1, sum(size for size in sizes[1:] if size > 1))
    if name == "array_join" or any(isinstance(child, exp.Lambda) for child in node.iter_expressions()):
        return math.prod(sizes)
    stated = _stated_size(name, arguments) if name in _STATED else 1
    return max(stated or 1, sum(size for size in sizes if size > 1))


def _size_of_replacement(name: str, arguments: list[exp.Expr]) -> int:
    search, replacement = (*arguments[1:3], exp.Literal.string(""))[:2]
    if not (isinstance(replacement, exp.Literal) and replacement.is_string):
        return _LENGTH_OF_VALUE * _size(replacement)
    if name == "regexp_replace":
        width = _least_width(search.name) if isinstance(search, exp.Literal) else 0
        # A pattern without a width may match before each character.
        return max(1, math.ceil(len(replacement.name) / width)) if width else len(replacement.name) + 1
    is_shorter = isinstance(search, exp.Literal) and len(search.name) >= len(replacement.name)
    return 1 if is_shorter else max(len(replacement.name), 1)


def _least_width(pattern: str) -> int:
    """Return how many characters a match has at least, as far as plain letters and digits of a pattern say it."""
    if re.search(r"[|(\[{]", pattern):
        return 0
    return len(re.findall(r"[^\W_](?![*?])", re.sub(r"\\+.", "", pattern)))


def _stated_size(name: str, arguments: list[exp.Expr]) -> int | None:
    """Return the largest size that a function states; None if it states none."""
    if name in _SERIES:
        return length_of_series([exp.Literal.number(0), *arguments] if len(arguments) == 1 else arguments)
    if name in _FORMATS:
        is_text = arguments and isinstance(arguments[0], exp.Literal) and arguments[0].is_string
        widths = re.findall(r"\d+", " ".join(re.findall(r"%[^A-Za-z%]*", arguments[0].name))) if is_text else None
        return None if widths is None else max(map(int, widths), default=1)
    place = _SIZED.get(name, len(arguments))
    if place >= len(arguments):
        return None
    if name == "format_number" and isinstance(layout := arguments[place], exp.Literal) and layout.is_string:
        return len(layout.name)
    if name == "array_insert":  # it counts a negative place from the end
        return None if (number := number_of(arguments[place])) is None else int(abs(number))
    bound = _bound(arguments[place])
    return _size_by_length(name, arguments) if bound is None else bound


def _bound(size: exp.Expr) -> int | None:
    """Return a number that a size does not exceed; None if its text states none."""
    if (number := number_of(size)) is not None:
        return max(int(number), 1)
    if isinstance(size, exp.Paren) or (isinstance(size, exp.Sub) and is_length(size.expression)):
        return _bound(size.this)
    if (greatest := greatest_of(size)) is not None:
        return greatest
    bounds = [_bound(each) for each in size.expressions] if name_of(size) == "least" else []
    return min((bound for bound in bounds if bound is not None), default=None)


def _size_by_length(name: str, arguments: list[exp.Expr]) -> int | None:
    """Return the size that a function takes from the length of a value: one for each part of it, and a number more."""
    size, more = arguments[_SIZED[name]], 0.0
    if isinstance(size, exp.Add):
        size, more = size.this, number_of(size.expression) or math.inf
    if more > MOST or not is_length(size):
        return None
    is_one = name not in _REPEATING or isinstance(arguments[0], exp.Literal)
    return (1 if is_one else _LENGTH_OF_VALUE) + int(more)


def _sql(node: exp.Expr) -> str:
    text = " ".join(node.sql(dialect="spark").split())
    return text if len(text) <= 80 else f"{text[:77]}..."

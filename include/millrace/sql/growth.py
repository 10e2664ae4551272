"""The functions whose value may be as large as an argument says: `lpad(x, 2000000000)` takes a driver's whole memory.

Each says its size as a number, or as a bound that can be read from the text, and sizes within each other are
multiplied. A column counts as one. What grows with the number of rows alone, as `collect_list` does, is not bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.sql.refusal import Refusal
from millrace.sql.series import MOST, greatest_of, is_length, length_of_series, name_of, number_of
from millrace.sql.spark_text import SPARK_TERMS, parse_spark

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

"""Check the arguments of each expectation: their names and types, the columns of the table, its bounds and sets.

If a number is compared with text, Spark casts the text, and the first row that cannot be cast fails the whole batch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from millrace.contracts.spec.column_types import BYTES, TEXT, TIME, TRUTH, TYPES, base_of
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.expectation import ROW_ACTIONS
from millrace.contracts.spec.expectation_arguments import (
    ARGUMENTS,
    BAND_ARGUMENTS,
    COLUMN_ARGUMENTS,
    COLUMN_LIST_ARGUMENTS,
    argument_schema,
)
from millrace.specs.checks.columns import declared_columns, stored_columns_in, type_of_column, unknown_column
from millrace.specs.checks.nested_arguments import Invalid, invalid_nested
from millrace.specs.document import Document, list_at, stated_rules
from millrace.specs.problem import Defect, KeyPath, did_you_mean

_FORMS = {
    "max_age": ("an age", "write it as '90 minutes', '36 hours' or '2 days'"),
    "other_table": ("a table", "write it as <layer>.<name>, such as silver.planes"),
    "wait_at_most": ("an age", "write it as '90 minutes', '36 hours' or '2 days'"),
    "source": ("a table", "write it as <layer>.<name>, such as silver.planes"),
}
"""Argument with a pattern -> what it is, and how it is written."""

_CONDITIONS = ("row_condition", "condition_parser")
_OF_SOME_ROWS = "for a rule on some rows write expect_sql: NOT (<which rows>) OR <what must hold>"
"""The arguments by which Great Expectations checks a part of the rows -> the way out."""

_BROKEN_EVERYWHERE = ("missing ), ", "unbalanced parenthesis", "unterminated character set", "nothing to repeat")

_ESCAPED = re.compile(r"\\Q.*?(?:\\E|$)|\\[pPxNb]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
"""The parts of a regular expression in which signs stand for themselves."""

_NOT_JAVA = {
    re.compile(r"\{(?!\d+(?:,\d*)?\})"): r"in Spark a { begins a repetition such as {2}: write \{ for the sign",
    re.compile(r"\(\?P[<=>]"): "Spark has named groups as (?<name>...)",
    re.compile(r"\(\?\("): "Spark has no groups with a condition: (?(1)...)",
}
"""What Python's regular expressions have and those of Spark lack -> the way out."""

_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "string": ("text", (str,)),
    "array": ("a list", (list,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "object": ("a mapping", (dict,)),
}
"""JSON Schema type -> its name for people, and the Python types of its values."""


def check_expectations(document: Document) -> Iterator[Defect]:
    """Find unknown, missing and invalid arguments, and columns that the table does not have."""
    columns, stored = declared_columns(document), stored_columns_in(document)
    for path, name, all_arguments in stated_rules(document):
        if name in ARGUMENTS:
            rule = document["expectations"][path[1]]
            action, takes = rule.get("action"), ARGUMENTS[name].all_names
            yield from _check_arguments(path, name, all_arguments)
            stated = {key: value for key, value in all_arguments.items() if key in takes}
            arguments = {key: value for key, value in stated.items() if not _invalid_value(name, key, value)}
            yield from check_bounds(path, arguments)
            yield from _check_warn((*path[:2], "warn"), name, arguments, rule.get("warn"), document)
            yield from _check_action(path, arguments, action, document)
            # A rule on single rows sees them before they are stored.
            yield from _check_columns(path, arguments, (columns if action in ROW_ACTIONS else stored) or [])
            yield from check_column_kinds(path, arguments, document)
            yield from check_kinds(path, arguments, document)


def _check_arguments(path: KeyPath, name: str, arguments: Mapping[str, Any]) -> Iterator[Defect]:
    takes = ARGUMENTS[name]
    for argument, value in arguments.items():
        if argument not in takes.all_names:
            fix = _OF_SOME_ROWS if argument in _CONDITIONS else did_you_mean(argument, takes.all_names)
            yield Defect((*path, argument), "the expectation takes no such argument", value, fix)
        elif invalid := _invalid_value(name, argument, value):
            yield Defect((*path, argument), *invalid)
    for argument in takes.required:
        if argument not in arguments:
            yield Defect(path, f"the expectation needs the argument {argument!r}", None, f"add `{argument}: ...`")
    if takes.one_of and not any(argument in arguments for argument in takes.one_of):
        needed = " or ".join(takes.one_of)
        yield Defect(path, f"the expectation needs {needed}, or both", None, f"add `{takes.one_of[0]}: ...`")


def _check_warn(
    path: KeyPath, name: str, arguments: Mapping[str, Any], warn: object, document: Document
) -> Iterator[Defect]:
    if not isinstance(warn, dict):
        return
    bounds = {argument: value for argument, value in warn.items() if argument in BAND_ARGUMENTS}
    defects = [
        Defect((*path, argument), *invalid)
        for argument, value in bounds.items()
        if (invalid := _invalid_value(name, argument, value))
    ]
    if not defects:
        column = {"column": arguments["column"]} if "column" in arguments else {}
        of_other_kinds = check_kinds((name,), {**column, **bounds}, document)
        defects = [replace(defect, path=(*path, *defect.path[1:])) for defect in of_other_kinds]
    yield from defects or check_band(path, name, arguments, warn)


def _invalid_value(name: str, argument: str, value: Any) -> Invalid | None:
    """Return what is wrong with the value of an argument of the expectation `name`; None for a valid value."""
    schema = argument_schema(name, argument)
    kinds = [_KINDS[name] for name in ([schema["type"]] if isinstance(schema["type"], str) else schema["type"])]
    types = tuple(kind for _, of_kind in kinds for kind in of_kind)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{' or '.join(name for name, _ in kinds)} is needed here", value, ""
    if schema["type"] == "object" or schema.get("items", {}).get("type") == "array":
        return invalid_nested(argument, schema, value)
    if isinstance(value, list) and len(value) < schema.get("minItems", 0):
        return "the list is empty", value, ""
    items = schema.get("items", {}).get("enum")
    for word in value if items and isinstance(value, list) else ():
        if word not in items:
            return "unknown value", word, did_you_mean(word, items)
    for item in value if isinstance(value, list) and "items" in schema else ():
        if not isinstance(item, str):
            return "text is needed here", item, ""
    if "enum" in schema and value not in schema["enum"]:
        return "unknown value", value, did_you_mean(value, schema["enum"])
    if "pattern" in schema and not re.search(schema["pattern"], str(value)):
        return f"{_FORMS[argument][0]} is needed here", value, _FORMS[argument][1]
    return _invalid_text(argument, value) or _out_of_range(schema, value)


def _invalid_text(argument: str, value: Any) -> Invalid | None:
    """Return what is wrong with a pattern, an age or a format, as `_invalid_value`."""
    for pattern in value if argument == "regex_list" else [value] if argument == "regex" else []:
        if reason := _broken_pattern(pattern):
            return f"not a regular expression: {reason}", pattern, ""
    try:
        if argument in ("max_age", "wait_at_most"):
            AGE.parse(value)
        if argument == "strftime_format":  # %D, for example, writes a date, and reads none
            time.strptime(time.strftime(value, time.gmtime(0)), value)
    except ValueError as error:
        return str(error), value, ""
    return None


def _broken_pattern(text: str) -> str:
    """Return why the text is no regular expression in Java, which Spark uses; empty if it may be one."""
    try:
        re.compile(text)
    except re.error as error:
        if error.msg.startswith(_BROKEN_EVERYWHERE):
            return str(error)
    except (OverflowError, RecursionError) as error:
        return str(error)
    signs = _ESCAPED.sub("", text)
    return next((way_out for pattern, way_out in _NOT_JAVA.items() if pattern.search(signs)), "")


def _out_of_range(schema: Mapping[str, Any], value: Any) -> Invalid | None:
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"this must be greater than {schema['exclusiveMinimum']}", value, ""
    if "minimum" in schema and value < schema["minimum"]:
        return f"this must be at least {schema['minimum']}", value, ""
    if "maximum" in schema and value > schema["maximum"]:
        return f"this must be at most {schema['maximum']}", value, ""
    return None


def _check_action(path: KeyPath, arguments: Mapping[str, Any], action: object, document: Document) -> Iterator[Defect]:
    """Check that an action that removes single rows has no tolerance, and is not for a table that is computed."""
    if "mostly" in arguments and action in ROW_ACTIONS:
        fix = f"leave it out, because {action} removes only the rows that fail; or use `action: warn` or `fail`"
        yield Defect((*path, "mostly"), "a rule on single rows has no tolerance", arguments["mostly"], fix)
    if action in ROW_ACTIONS and document.get("query") and str(document.get("table", "")).startswith("silver."):
        fix = "use `action: warn` or `fail`; or state the rule on the table of the value; or leave the row out: WHERE"
        yield Defect((*path[:2], "action"), "the row of a query was never received: nobody could fix it", action, fix)
    if action in ROW_ACTIONS and str(document.get("table", "")).startswith("gold."):
        fix = "use `action: warn` or `fail`, or state the rule on the silver table"
        yield Defect((*path[:2], "action"), "a gold row is a group of rows, and cannot be removed", action, fix)


def _check_columns(path: KeyPath, arguments: Mapping[str, Any], columns: list[str]) -> Iterator[Defect]:
    names: list[tuple[KeyPath, Any]] = [((*path, key), arguments.get(key)) for key in COLUMN_ARGUMENTS]
    for key in COLUMN_LIST_ARGUMENTS:
        names += [((*path, key, index), name) for index, name in enumerate(list_at(arguments, key))]
    for place, name in names:
        if columns and isinstance(name, str) and not name.startswith("_") and name not in columns:
            yield unknown_column(place, name, columns)


_VALUE_ARGUMENTS = ("min_value", "max_value", "value_set")
_OF_VALUES = frozenset(
    {
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_not_be_in_set",
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_most_common_value_to_be_in_set",
        "expect_column_max_to_be_between",
        "expect_column_min_to_be_between",
    }
)
"""The expectations that compare a column's own values; other expectations with bounds compare figures."""

_EXTREMES = ("expect_column_max_to_be_between", "expect_column_min_to_be_between")

_OF_FRACTIONS = frozenset(
    {
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_stdev_to_be_between",
        "expect_column_sum_to_be_between",
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
    }
)

_NUMBERS, _TIMES = "numbers", "dates or instants"
_MEASURED = {
    "expect_column_values_to_be_between": (_NUMBERS, _TIMES),
    "expect_column_mean_to_be_between": (_NUMBERS,),
    "expect_column_median_to_be_between": (_NUMBERS,),
    "expect_column_stdev_to_be_between": (_NUMBERS,),
    "expect_column_sum_to_be_between": (_NUMBERS,),
    "expect_column_value_z_scores_to_be_less_than": (_NUMBERS,),
}
"""The expectations that only columns of some kinds can have -> these kinds."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?)?)?")
"""The dates and instants that Spark reads, too: it gets the values of a set as they are, and bounds in its own form."""

_FIXES = {
    "numbers": "write a number, without quotes",
    "whole numbers": "write a whole number, without quotes",
    "text": "write it in quotes",
    "dates": 'write it as "2013-01-01"',
    "dates or instants": 'write it as "2013-01-01" or "2013-01-01T00:00:00Z"',
    "booleans": "write true or false, without quotes",
}


def check_band(path: KeyPath, name: str, outer: Mapping[str, Any], warn: Mapping[str, Any]) -> Iterator[Defect]:
    """Find arguments of a warning band that are not bounds, or are wider than those of the rule's own band, `outer`."""
    bounding = [argument for argument in ARGUMENTS[name].all_names if argument in BAND_ARGUMENTS]
    for argument, value in warn.items():
        if argument not in bounding:
            fix = did_you_mean(argument, bounding) if bounding else "leave the band out: this expectation has no bounds"
            yield Defect((*path, argument), "a band that warns states only bounds", value, fix)
        elif _is_wider(BAND_ARGUMENTS[argument], value, outer.get(argument)):
            message = "a band that warns must be within the rule's own band"
            word = "more" if BAND_ARGUMENTS[argument] > 0 else "less"
            yield Defect((*path, argument), message, value, f"give {outer[argument]!r} or {word}")


def check_bounds(path: KeyPath, arguments: Mapping[str, Any]) -> Iterator[Defect]:
    """Find bounds between which no value is possible, in the arguments of the expectation at `path`."""
    for lower, upper in (("min_value", "max_value"), ("min_percent", "max_percent")):
        low, high = _comparable(arguments.get(lower)), _comparable(arguments.get(upper))
        if low is None or high is None or _kind(low) is not _kind(high):
            continue
        if low > high or (low == high and (arguments.get("strict_min") or arguments.get("strict_max"))):
            message = f"nothing lies between {lower} {arguments[lower]!r} and this"
            fix = f"give more than {arguments[lower]!r}, or less as {lower}"
            yield Defect((*path, upper), message, arguments[upper], fix)


def check_kinds(path: KeyPath, arguments: Mapping[str, Any], document: Document) -> Iterator[Defect]:
    """Find bounds and sets, in the rule at `path`, of another kind than the values that they are compared with."""
    kind = _compared_kind(str(path[-1]), arguments, document)
    for argument in _VALUE_ARGUMENTS if kind else ():
        bounds = arguments.get(argument)
        for value in bounds if isinstance(bounds, list) else [bounds]:
            is_read = kind != _TIMES or argument != "value_set" or _TIME.fullmatch(str(value))
            if value is not None and not (_is_of_kind(value, kind) and is_read):
                yield Defect((*path, argument), f"this is compared with {kind}", value, _FIXES[kind])


def check_column_kinds(path: KeyPath, arguments: Mapping[str, Any], document: Document) -> Iterator[Defect]:
    """Find columns whose values the rule at `path` cannot measure, and two columns that it cannot compare."""
    measured, column = _MEASURED.get(str(path[-1])), arguments.get("column")
    if measured and (kind := _kind_of_column(column, document)) and kind not in measured:
        message = f"{column} holds {kind}, and this rule measures {' or '.join(measured)}"
        yield Defect((*path, "column"), message, column, "leave the rule out, or write a condition: expect_sql")
    pair = [arguments.get(key) for key in ("column_A", "column_B")]
    kinds = [_kind_of_column(name, document) for name in pair]
    if all(kinds) and kinds[0] != kinds[1] and path[-1] != "expect_column_pair_values_to_be_in_set":
        message = f"{pair[0]} holds {kinds[0]}, which {kinds[1]} cannot be compared with"
        yield Defect((*path, "column_B"), message, pair[1], f"name a column of {kinds[0]}, or write expect_sql")


def _kind_of_column(name: object, document: Document) -> str:
    """Return the kind of a column's values; empty if the document does not say, and for nested types."""
    kind = TYPES.get(base_of(type_of_column(document, name) or ""))
    return {TIME: _TIMES, TEXT: "text", TRUTH: "booleans", BYTES: "bytes"}.get(kind.values, _NUMBERS) if kind else ""


def _compared_kind(name: str, arguments: Mapping[str, Any], document: Document) -> str:
    """Return the kind of values that the expectation compares; empty if unknown."""
    if name not in _OF_VALUES:
        return "numbers" if name in _OF_FRACTIONS else "whole numbers"
    column = arguments.get("column")
    kind = _kind_of_column(column, document)
    if name in _EXTREMES and type_of_column(document, column) == "date":
        return "dates"  # Great Expectations cannot compare a date with an instant
    is_compared = kind in _MEASURED.get(name, (kind,)) and kind != "bytes"
    # Great Expectations compares the extremes of booleans with numbers.
    return kind if is_compared and (kind != "booleans" or name.endswith("_set")) else ""


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind in ("dates", _TIMES):
        with suppress(TypeError, ValueError):
            datetime.fromisoformat(value)
            return not value.isdigit() and (kind == _TIMES or _DATE.fullmatch(value) is not None)
        return False
    of_kinds = {_NUMBERS: (int, float), "whole numbers": (int,), "text": (str,), "booleans": (bool,)}
    return isinstance(value, of_kinds[kind]) and (kind == "booleans" or not isinstance(value, bool))


def _is_wider(direction: int, inner: Any, outer: Any) -> bool:
    """Whether the inner bound is on the wrong side of the outer bound; false if the two cannot be compared."""
    low, high = _comparable(inner), _comparable(outer)
    if direction == 0 or low is None or high is None or _kind(low) is not _kind(high):
        return False
    return bool(low < high if direction > 0 else low > high)


def _kind(bound: Any) -> type:
    return float if isinstance(bound, int | float) else type(bound)


def _comparable(bound: Any) -> Any:
    """Return a bound as a number, a duration or a moment; None for anything else."""
    if isinstance(bound, bool) or bound is None:
        return None
    if isinstance(bound, int | float):
        return bound
    if isinstance(bound, date):
        return datetime.fromisoformat(bound.isoformat()).replace(tzinfo=None)
    with suppress(ValueError):
        return AGE.parse(bound)
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(bound).replace(tzinfo=None)
    return None

"""The fields of records that the columns of a bronze table read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from include.contracts.spec.bronze_sources import KafkaSource
from include.contracts.spec.table_spec import BronzeSpec

_IN_BACKTICKS = re.compile(r"`(?:[^`]|``)+`")
_PLAIN = re.compile(r"(?!\w+\(.*\)$)[^`.][^.]*", re.DOTALL)
"""A name without a dot that is not like the call of a function, so that SQL by mistake is no name."""


def field_of(text: str) -> str:
    """Return the name of a field that `from` of a bronze column states.

    It is stated as it is. Backticks around it are needed if it has a dot, begins with a backtick, or is like the call
    of a function.

    >>> field_of("Order ID"), field_of("`a.b`"), field_of("say `hi`")
    ('Order ID', 'a.b', 'say `hi`')

    Raises:
        ValueError: backticks are missing or not closed, or the name is empty.
    """
    if _IN_BACKTICKS.fullmatch(text):
        return text[1:-1].replace("``", "`")
    if not _PLAIN.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a field")
    return text


def field_text(name: str) -> str:
    """Return the name of a field as `field_of` reads it.

    >>> field_text("Order ID"), field_text("a.b")
    ('Order ID', '`a.b`')
    """
    return name if _PLAIN.fullmatch(name) else quoted(name)


def quoted(name: str) -> str:
    """Return the name of a field or column, which may contain any character, as Spark SQL.

    >>> quoted("Order ID"), quoted("a`b")
    ('`Order ID`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def fields_of(spec: BronzeSpec) -> dict[str, str]:
    """Return column -> the field that it reads; a column that `transforms` of the source fills reads none."""
    filled = spec.source.transforms if isinstance(spec.source, KafkaSource) else ()
    return {
        name: name if column.expression is None else field_of(column.expression)
        for name, column in spec.columns.items()
        if name not in filled
    }


def fields_among(names: Iterable[str], spec: BronzeSpec) -> dict[str, str]:
    """Return column -> the one of `names` that it reads, without the columns whose field is not among them.

    Raises:
        ValueError: a column could read two of the names, because the source's `field_names` are `any_case`.
    """
    same = str.lower if spec.source.field_names == "any_case" else str
    found = defaultdict[str, list[str]](list)
    for name in names:
        found[same(name)].append(name)
    fields = {column: found[same(field)] for column, field in fields_of(spec).items() if same(field) in found}
    for column, candidates in fields.items():
        if len(candidates) > 1:
            several = " and ".join(candidates)
            raise ValueError(f"the column {column} could read {several}; correct the file, or write field_names: exact")
    return {column: candidate for column, (candidate,) in fields.items()}

"""The fields of records that the columns of a bronze table read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.contracts.spec.table_spec import BronzeSpec

FieldPath = tuple[str | int, ...]
"""The place of a value in a record: the name of its field, then names in objects and numbers of elements in lists."""

MAX_PARTS = 10
"""How many names and numbers may follow the field: each makes the plan of a batch deeper."""

_STEP = re.compile(r"(?P<name>`(?:[^`]|``)+`|[^`.][^.]*?)(?P<elements>(?:\[\d{1,9}\])*)(?:(?P<more>\.)|\Z)", re.DOTALL)
_LIKE_A_CALL = re.compile(r"\w+\(.*\)\Z", re.DOTALL)
"""SQL by mistake is no name."""


def path_of(text: str) -> FieldPath:
    """Return the path that `from` of a bronze column states: a field, or a part of its value.

    Names are stated as they are, with a dot before each further one. Backticks around a name are needed if it has a
    dot, begins with a backtick, ends with a number in brackets, or is like the call of a function; in a path of several
    names also if it begins or ends with a blank.

    >>> path_of("Order ID"), path_of("`a.b`"), path_of("say `hi`")
    (('Order ID',), ('a.b',), ('say `hi`',))
    >>> path_of("customer.address.city"), path_of("items[0].`unit.price`")
    (('customer', 'address', 'city'), ('items', 0, 'unit.price'))

    Raises:
        ValueError: backticks are missing or not closed, or a name is empty.
    """
    path, at, is_last = list[str | int](), 0, False
    while not is_last:
        step = _STEP.match(text, at)
        if step is None or _LIKE_A_CALL.match(text):
            raise ValueError(f"{text!r} is no name of a field")
        name = step["name"]
        path.append(name[1:-1].replace("``", "`") if name.startswith("`") else name)
        path += map(int, re.findall(r"\d+", step["elements"]))
        at, is_last = step.end(), not step["more"]
        if name != name.strip() and (len(path) > 1 or not is_last):
            raise ValueError(f"{text!r} is no name of a field")
    return tuple(path)


def field_text(name: str) -> str:
    """Return the name of a field as `path_of` reads it, and as `JsonTexts.step` writes it.

    >>> field_text("Order ID"), field_text("a.b")
    ('Order ID', '`a.b`')
    """
    try:
        return name if name == name.strip() and path_of(name) == (name,) else quoted(name)
    except ValueError:
        return quoted(name)


def path_text(path: FieldPath) -> str:
    """Return a path as `path_of` reads it.

    >>> path_text(("items", 0, "unit.price"))
    'items[0].`unit.price`'
    """
    if len(path) == 1:
        return field_text(str(path[0]))
    for name_text in (field_text, quoted):
        steps = (f"[{step}]" if isinstance(step, int) else f".{name_text(step)}" for step in path)
        text = "".join(steps).removeprefix(".")
        try:
            if path_of(text) == path:
                return text
        except ValueError:  # Together the names look like SQL.
            continue
    raise ValueError(f"{path} is no path: it begins with a name")


def quoted(name: str) -> str:
    """Return the name of a field or column, which may contain any character, as Spark SQL.

    >>> quoted("Order ID"), quoted("a`b")
    ('`Order ID`', '`a``b`')
    """
    return "`" + name.replace("`", "``") + "`"


def paths_of(spec: BronzeSpec) -> dict[str, FieldPath]:
    """Return column -> the path that it reads; a column that `transforms` of the source fills reads none."""
    filled = spec.source.transforms if isinstance(spec.source, KafkaSource) else ()
    return {
        name: (name,) if column.expression is None else path_of(column.expression)
        for name, column in spec.columns.items()
        if name not in filled
    }


def fields_of(spec: BronzeSpec) -> dict[str, str]:
    """Return column -> the field that it reads, whole or a part of it."""
    return {name: str(path[0]) for name, path in paths_of(spec).items()}


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

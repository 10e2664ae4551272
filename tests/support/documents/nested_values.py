"""Random nested values of JSON, and what Python's own reader makes of them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from include.contracts.spec.nested_type import is_nested, nested_type
from spark_jobs.transforms.nested_values import HAS_MORE, OF_ANOTHER_TYPE, WHOLE

NAMES = st.sampled_from(["city", "zip", "order", "id", "more", "x", "City", "a.b", "`"])
SCALARS = st.sampled_from([None, True, 7, -1, 10**12, 1.5, "7", " 8 ", "x", "", "größe"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def values_like(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, in which any part may be missing, null, or of another kind."""
    if not is_nested(kind):
        return st.one_of(SCALARS, SCALARS, VALUES)
    nested = nested_type(kind)
    parts = {name: values_like(part) for name, part in nested.parts.items()}
    if nested.kind == "struct":
        return st.one_of(st.none(), VALUES, *[st.fixed_dictionaries({}, optional={**parts, "zip": SCALARS})] * 4)
    (part,) = parts.values()
    many = st.lists(part, max_size=3) if nested.kind == "array" else st.dictionaries(NAMES, part, max_size=3)
    return st.one_of(st.none(), VALUES, many, many, many)


def expected(value: Any, kind: str) -> tuple[Any, int]:
    """What Python reads of a value, and how it fits."""
    if value is None:
        return None, WHOLE
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":")), WHOLE
    if kind == "int":
        text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
        is_int = text.lstrip("-").isdigit() and abs(int(text)) < 2**31
        return (int(text), WHOLE) if is_int else (None, OF_ANOTHER_TYPE)
    nested = nested_type(kind)
    if not isinstance(value, list if nested.kind == "array" else dict):
        return None, OF_ANOTHER_TYPE
    if nested.kind == "struct":
        parts = {name: expected(value.get(name), part) for name, part in nested.parts.items()}
        own = HAS_MORE if set(value) - set(parts) else WHOLE
        return {name: read for name, (read, _) in parts.items()}, max(own, *(misfit for _, misfit in parts.values()))
    (part,) = nested.parts.values()
    items = enumerate(value) if nested.kind == "array" else value.items()
    read = {name: expected(item, part) for name, item in items}
    worst = max((misfit for _, misfit in read.values()), default=WHOLE)
    plain = {name: item for name, (item, _) in read.items()}
    return (list(plain.values()) if nested.kind == "array" else plain), worst

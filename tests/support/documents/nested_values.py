"""Random nested values of JSON, and what Python's own reader makes of them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from millrace.contracts.spec.nested_type import is_nested, nested_type
from millrace.contracts.spec.record_fields import FieldPath

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


Lost = dict[FieldPath, Any]


def expected(value: Any, kind: str) -> tuple[Any, Lost]:
    """What Python reads of a value, and the path of each part that it does not read, with the part."""
    if value is None:
        return None, {}
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":")), {}
    if kind == "int":
        text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
        is_int = text.lstrip("-").isdigit() and abs(int(text)) < 2**31
        return (int(text), {}) if is_int else (None, {(): value})
    nested = nested_type(kind)
    if not isinstance(value, list if nested.kind == "array" else dict):
        return None, {(): value}
    if nested.kind == "struct":
        read = {name: expected(value.get(name), part) for name, part in nested.parts.items()}
        lost = {(name,): part for name, part in value.items() if name not in read}
    else:
        (part,) = nested.parts.values()
        items = enumerate(value) if nested.kind == "array" else value.items()
        read, lost = {name: expected(item, part) for name, item in items}, {}
    lost |= {(name, *path): part for name, (_, below) in read.items() for path, part in below.items()}
    plain = {name: item for name, (item, _) in read.items()}
    return (list(plain.values()) if nested.kind == "array" else plain), lost

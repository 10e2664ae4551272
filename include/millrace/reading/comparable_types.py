"""In which type the values of two columns can be compared without loss, and in which form."""

from __future__ import annotations

import pyarrow as pa

from millrace.control.log.table_queries import identifiers, text_literals

_MOST_DIGITS = 38
_EXACT_BITS = 32
"""The most bits of a whole number that every one of a double has."""


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both types are compared: it holds each of them exactly. None if none does.

    Structs must have the same fields in the same order.

    >>> common_type(pa.int32(), pa.int64()), common_type(pa.float32(), pa.int32())
    (DataType(int64), DataType(double))
    >>> common_type(pa.int64(), pa.float64())
    >>> common_type(pa.decimal128(10, 2), pa.decimal128(12, 6)), common_type(pa.int8(), pa.decimal128(4, 2))
    (Decimal128Type(decimal128(14, 6)), Decimal128Type(decimal128(5, 2)))
    >>> common_type(pa.list_(pa.int32()), pa.list_(pa.int64()))
    ListType(list<item: int64>)
    """
    if one.equals(other):
        return one
    kinds = (one, other)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        if [field.name for field in one] != [field.name for field in other]:
            return None
        fields = [(mine.name, common_type(mine.type, theirs.type)) for mine, theirs in zip(one, other, strict=True)]
        return None if any(kind is None for _, kind in fields) else pa.struct(fields)
    if pa.types.is_map(one) and pa.types.is_map(other):
        key, value = common_type(one.key_type, other.key_type), common_type(one.item_type, other.item_type)
        return None if key is None or value is None else pa.map_(key, value)
    if all(map(pa.types.is_list, kinds)):
        element = common_type(one.value_type, other.value_type)
        return None if element is None else pa.list_(element)
    if all(map(pa.types.is_integer, kinds)):
        return max(kinds, key=lambda kind: kind.bit_width)
    if any(map(pa.types.is_floating, kinds)):
        others = [kind for kind in kinds if not pa.types.is_floating(kind)]
        is_exact = all(pa.types.is_integer(kind) and kind.bit_width <= _EXACT_BITS for kind in others)
        return pa.float64() if is_exact else None
    if any(map(pa.types.is_decimal, kinds)) and all(pa.types.is_decimal(kind) or _digits(kind) for kind in kinds):
        scale = max(_scale(kind) for kind in kinds)
        digits = scale + max(_digits(kind) - _scale(kind) for kind in kinds)
        return pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else None
    return None


def _digits(kind: pa.DataType) -> int:
    """Return the most digits of a decimal or a whole number; 0 for other types."""
    if pa.types.is_decimal(kind):
        return int(kind.precision)
    return {8: 3, 16: 5, 32: 10, 64: 19}[kind.bit_width] if pa.types.is_integer(kind) else 0


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0


def canonical(value: str, kind: pa.DataType, depth: int = 0) -> str:
    """Return the SQL of a value in which the entries of maps are in the order of their keys.

    >>> print(canonical("m", pa.map_(pa.string(), pa.int64())))
    map_from_entries(list_sort(map_entries(m)))
    >>> print(canonical("n", pa.list_(pa.int64())))
    n
    """
    if not _has_map(kind):
        return value
    each = f"e{depth}"
    if pa.types.is_struct(kind):
        fields = (
            f"{identifiers([field.name])} := "
            + canonical(f"struct_extract({value}, {text_literals([field.name])})", field.type, depth)
            for field in kind
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"
    if pa.types.is_list(kind):
        return f"list_transform({value}, lambda {each}: {canonical(each, kind.value_type, depth + 1)})"
    entries = f"map_entries({value})"
    if _has_map(kind.item_type):
        item = canonical(f"{each}.value", kind.item_type, depth + 1)
        entries = f"list_transform({entries}, lambda {each}: struct_pack(key := {each}.key, value := {item}))"
    return f"map_from_entries(list_sort({entries}))"


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _has_map(kind.value_type)
    return bool(pa.types.is_map(kind))

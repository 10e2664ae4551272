"""Names for the columns of fields: valid, unique, and usable in SQL without quotes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import count
from unicodedata import combining, normalize

from millrace.contracts.spec.values import NAME

_LONGEST = 60
"""Characters of a new name; a name that is valid as it is may be longer."""

_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def names_of_fields(fields: Iterable[str], reserved: Collection[str]) -> dict[str, str]:
    """Return column -> field, for different fields; a field with a valid name keeps it.

    Args:
        fields: the names of the fields, in their order.
        reserved: words in small letters that no column should have as its name.

    >>> names_of_fields(["Order ID", "order_id", "orderId", "Größe", "2nd", "_id", "日本", "order"], ["order"])
    {'order_id_2': 'Order ID', 'order_id': 'order_id', 'order_id_3': 'orderId', 'grosse': 'Größe', \
'column_2nd': '2nd', 'id': '_id', 'column_7': '日本', 'order_': 'order'}
    """
    fields = list(fields)
    taken = {field for field in fields if re.fullmatch(NAME, field) and field not in reserved}
    columns: dict[str, str] = {}
    for number, field in enumerate(fields, 1):
        name = field if field in taken else _free_name(plain_name(field) or str(number), {*taken, *columns}, reserved)
        columns[name] = field
    return columns


def _free_name(plain: str, taken: Collection[str], reserved: Collection[str]) -> str:
    name = (plain if plain[0].isalpha() else f"column_{plain}")[:_LONGEST].rstrip("_")
    name = f"{name}_" if name in reserved else name
    numbered = (f"{name.rstrip('_')}_{number}" for number in count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def plain_name(text: str) -> str:
    """Return a text in small letters, digits and `_`, without accents; empty if it has no such letter.

    >>> plain_name("  Größe (in %)"), plain_name("customerID"), plain_name("日本")
    ('grosse_in', 'customer_id', '')
    """
    words = normalize("NFKD", _NEW_WORD.sub("_", text).casefold())
    return re.sub(r"[^a-z0-9]+", "_", "".join(letter for letter in words if not combining(letter))).strip("_")

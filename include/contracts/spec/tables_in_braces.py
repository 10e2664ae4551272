"""The tables that the query of a rule names in braces."""

from __future__ import annotations

import re
from collections.abc import Callable

OWN_TABLE = "table"
"""The name in braces of the table that the rule checks."""

# Any other text in braces, such as the {2} of a regular expression, is a part of the query.
_IN_BRACES = re.compile(r"\{(table|(?:bronze|silver|gold)\.[a-z][a-z0-9_]*)\}")


def tables_in_braces(query: str) -> list[str]:
    """Return the tables, each once.

    >>> tables_in_braces("SELECT * FROM {table} JOIN {silver.orders} WHERE a rlike 'x{2}'")
    ['table', 'silver.orders']
    """
    return list(dict.fromkeys(_IN_BRACES.findall(query)))


def with_names(query: str, name_of: Callable[[str], str]) -> str:
    """Return the query with another name in place of each table in braces."""
    return _IN_BRACES.sub(lambda place: name_of(place[1]), query)

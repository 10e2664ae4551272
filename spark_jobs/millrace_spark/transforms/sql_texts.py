"""Values as literals of Spark SQL. Spark parses a text of ten thousand literals in a tenth of the time that it takes to
build as many Columns."""

from __future__ import annotations

from collections.abc import Iterable


def sql_text(value: str) -> str:
    """Return `value` as a SQL string literal.

    >>> sql_text("it's")
    "'it\\\\'s'"
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def in_texts(expression: str, values: Iterable[str]) -> str:
    """Return SQL that is true where an expression, as text, is one of the values.

    >>> in_texts("`_source_file`", ["orders/a.json", "orders/b.json"])
    "`_source_file` IN ('orders/a.json', 'orders/b.json')"
    """
    return f"{expression} IN ({', '.join(map(sql_text, values))})"

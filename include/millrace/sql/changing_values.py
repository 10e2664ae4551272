"""What gives other values in each run for the same rows: the clock, chance, the session."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from millrace.sql.clock_words import clock_words
from millrace.sql.expression import SqlExpression
from millrace.sql.query_functions import REFUSED, REFUSED_BARE

_UNIX_TIMESTAMP = re.compile(r"\bunix_timestamp\s*\(\s*\)", re.IGNORECASE)


def changing_values(
    sql: SqlExpression, tree: exp.Expr | None, times: Collection[str] = (), *, gives_time: bool = False
) -> dict[str, str]:
    """Return what gives other values in each run -> why.

    Args:
        sql: an expression or a query.
        tree: the same, parsed; None if sqlglot cannot parse it.
        times, gives_time: as for `clock_words`.
    """
    bare = (word for word in map(str.lower, sql.symbols) if word in REFUSED_BARE)
    found = {name: REFUSED[name] for name in (*map(str.lower, sql.functions), *bare) if name in REFUSED}
    if _UNIX_TIMESTAMP.search(sql.text):
        found["unix_timestamp()"] = REFUSED["now"]
    words = clock_words(tree, times, gives_time=gives_time) if tree else ()
    return {**found, **{f"{word!r}, as a time,": REFUSED["now"] for word in words}}

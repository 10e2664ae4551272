"""A table that is not run, since a table that it reads has failed, was refused or has to wait."""

from __future__ import annotations

from collections.abc import Mapping

_SAID = " waits for "


def blocked_message(table: str, causes: Mapping[str, str]) -> str:
    """One line that names what the person on call must look at: not a table in between, but the one that failed.

    Args:
        table: the table that is not run.
        causes: each table that it reads and that stops it -> what was said of that one.

    >>> silver = blocked_message("silver.orders", {"bronze.orders": "bronze.orders: no landing folder /x\\nWait."})
    >>> silver
    'silver.orders waits for bronze.orders: no landing folder /x'
    >>> blocked_message("gold.revenue", {"silver.orders": silver})
    'gold.revenue waits for bronze.orders: no landing folder /x'
    """
    return f"{table}{_SAID}{'; '.join(dict.fromkeys(_root(*cause) for cause in causes.items()))}"


def _root(table: str, said: str) -> str:
    first = said.split("\n", 1)[0]
    waited = f"{table}{_SAID}"
    if first.startswith(waited):
        return first.removeprefix(waited)
    return first if first.startswith(table) else f"{table}: {first}"

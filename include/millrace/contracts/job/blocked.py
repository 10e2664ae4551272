"""The message for a table that is not run, because a table that it reads failed, was refused or has to wait."""

from __future__ import annotations

from collections.abc import Mapping

_WAITS_FOR = " waits for "


def blocked_message(table: str, causes: Mapping[str, str]) -> str:
    """Return one line that names the tables that failed first, not those in between.

    Args:
        table: the table that is not run.
        causes: each source table that stops it -> the message of that table.

    >>> silver = blocked_message("silver.orders", {"bronze.orders": "bronze.orders: no landing folder /x\\nWait."})
    >>> silver
    'silver.orders waits for bronze.orders: no landing folder /x'
    >>> blocked_message("gold.revenue", {"silver.orders": silver})
    'gold.revenue waits for bronze.orders: no landing folder /x'
    """
    return f"{table}{_WAITS_FOR}{'; '.join(dict.fromkeys(_root_cause(*cause) for cause in causes.items()))}"


def _root_cause(table: str, message: str) -> str:
    first_line = message.split("\n", 1)[0]
    blocked = f"{table}{_WAITS_FOR}"
    if first_line.startswith(blocked):
        return first_line.removeprefix(blocked)
    return first_line if first_line.startswith(table) else f"{table}: {first_line}"

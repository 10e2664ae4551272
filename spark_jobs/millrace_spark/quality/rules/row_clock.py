"""The clock in a row rule: a column, so that a row has one verdict, however often and whenever it is judged."""

from __future__ import annotations

import re

from millrace.sql.query_functions import CLOCKS, REFUSED_BARE

CLOCK = "_clock"
"""The column with the time at which a row is judged; bronze stores it as `_ingested_at`."""

_READS_CLOCK = re.compile(rf"\b({'|'.join(CLOCKS)})\b", re.IGNORECASE)
_DATES = ("current_date", "curdate")
_CAST = {"localtimestamp": f"CAST({CLOCK} AS TIMESTAMP_NTZ)", **dict.fromkeys(_DATES, f"CAST({CLOCK} AS DATE)")}


def reads_clock(condition: str) -> bool:
    """Whether a condition may call a function of the clock."""
    return bool(_READS_CLOCK.search(condition))


def with_clock_column(condition: str) -> str:
    """Return a condition in which the functions of the clock are the column `CLOCK`.

    >>> with_clock_column("at <= current_timestamp AND note <> 'now()' AND day < date_add(current_date(), 1)")
    "at <= _clock AND note <> 'now()' AND day < date_add(CAST(_clock AS DATE), 1)"
    """
    if not reads_clock(condition):
        return condition
    # Imported here, because sqlglot takes half a second to load, and few rules read the clock.
    from sqlglot import TokenType

    from millrace.sql.spark_text import tokens_of

    tokens, parts, done = tokens_of(condition), list[str](), 0
    for at, token in enumerate(tokens):
        name = token.text.lower()
        is_called = [each.token_type for each in tokens[at + 1 : at + 3]] == [TokenType.L_PAREN, TokenType.R_PAREN]
        is_field = at > 0 and tokens[at - 1].token_type is TokenType.DOT
        is_quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if name in CLOCKS and (is_called or name in REFUSED_BARE) and not (is_field or is_quoted):
            parts += [condition[done : token.start], _CAST.get(name, CLOCK)]
            done = tokens[at + 2 if is_called else at].end + 1
    return "".join((*parts, condition[done:]))

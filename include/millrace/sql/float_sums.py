"""How far the sums of an expression may differ from one run to the next: sums of doubles depend on their order.

Two sums of the same n doubles, in any two orders, differ by at most n * 2^-52 * sum(|x|): Higham, Accuracy and
Stability of Numerical Algorithms, section 4.2. If the numbers cancel each other out, this may be more than the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import Token, TokenType

from millrace.sql.spark_text import places_around, tokens_of

_EPSILON = f"{2.0**-52!r}D"
_MEAN, _SUM = "sum({size}){rows}", "sum({size}){rows} * count({size}){rows}"
_ERRORS = {
    **dict.fromkeys(("avg", "mean", "try_avg"), _MEAN),
    **dict.fromkeys(("sum", "try_sum", "std", "stddev", "stddev_pop", "stddev_samp"), _SUM),
    **dict.fromkeys(("variance", "var_pop", "var_samp"), "sum({size} * {size}){rows} * count({size}){rows}"),
}
"""Aggregate -> by how much it may be wrong, in units of 2^-52, by the sizes of its numbers."""


@dataclass(frozen=True)
class Sum:
    """A sum within an expression, or the name of a column that is computed from sums.

    Attributes:
        start, end: where it stands in the expression.
        text: the sum as it is written, with its FILTER and OVER.
        error: by how much two runs may differ in it, as Spark SQL.
    """

    start: int
    end: int
    text: str
    error: str


def sums_of(text: str, computed: Collection[str] = ()) -> Iterator[Sum]:
    """Yield the sums of an expression, and the uses of other columns that are computed from sums.

    Args:
        text: Spark SQL.
        computed: the columns before it that are; each has its error in the column that `error_column` names.

    >>> for each in sums_of("round(sum(o.amount) filter (where paid), 2) + mean", {"mean"}):
    ...     print(each.text, "|", each.error)
    sum(o.amount) filter (where paid) | sum(abs(CAST((o.amount) AS DOUBLE))) filter (where paid) * \
count(abs(CAST((o.amount) AS DOUBLE))) filter (where paid) * 2.220446049250313e-16D
    mean | `millrace_error_mean`
    """
    tokens = tokens_of(text)
    if any(token.token_type is TokenType.SELECT for token in tokens):
        return  # such a sum is over the rows of a subquery
    end_of_comment = "\n" if "--" in text else ""
    for at, token in enumerate(tokens):
        name, is_called = token.text.lower(), at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
        if at and tokens[at - 1].token_type is TokenType.DOT:
            continue
        if is_called and name in _ERRORS:
            close = _after_group(tokens, at + 1)
            first = at + 2 + (tokens[at + 2].token_type in (TokenType.DISTINCT, TokenType.ALL))
            end = close
            while end < len(tokens) and tokens[end].token_type in (TokenType.FILTER, TokenType.OVER):
                end = _after_group(tokens, end + 1)
            rows = text[tokens[close - 1].end + 1 : tokens[end - 1].end + 1]
            size = f"abs(CAST(({text[tokens[first].start : tokens[close - 1].start]}{end_of_comment}) AS DOUBLE))"
            error = f"{_ERRORS[name].format(size=size, rows=rows)} * {_EPSILON}"
            yield Sum(token.start, tokens[end - 1].end + 1, text[token.start : tokens[end - 1].end + 1], error)
        elif name in computed and not is_called and token.token_type is not TokenType.STRING:
            yield Sum(token.start, token.end + 1, token.text, f"`{error_column(name)}`")


def error_of(text: str, sums: Collection[Sum]) -> str:
    """Return by how much two runs may differ in an expression, as Spark SQL: its change when a sum changes."""
    changes = []
    for each in sums:
        others = (f"{text[: each.start]}({each.text} {sign} {each.error}){text[each.end :]}" for sign in "+-")
        both = ", ".join(f"abs(CAST(({other}\n) AS DOUBLE) - CAST(({text}\n) AS DOUBLE))" for other in others)
        changes.append(f"coalesce(greatest({both}), 0D)")
    return f"({' + '.join(changes)}) * 1.001D"


def error_column(name: str) -> str:
    """Return the column in which `error_of` another column stands."""
    return f"millrace_error_{name.lower()}"


def selected(query: str) -> tuple[Mapping[str, str], int]:
    """Return the named expressions of the SELECT that gives the rows of a query, and where another one can follow.

    There are none if several branches give the rows, or if duplicates are removed, which another column might keep.

    >>> selected("SELECT a IS DISTINCT FROM b AS c, sum(x) AS n FROM f")
    ({'c': 'a IS DISTINCT FROM b', 'n': 'sum(x)'}, 45)
    >>> selected("SELECT sum(x) AS n FROM f UNION TABLE g")
    ({}, 0)

    >>> selected("WITH x AS (SELECT 1 AS one) SELECT one, sum(one) AS n FROM x GROUP BY 1")
    ({'n': 'sum(one)'}, 53)
    """
    tokens = tokens_of(query)
    kinds = {place: tokens[place].token_type for place in places_around(tokens, 0)} if tokens else {}
    selects = [place for place, kind in kinds.items() if kind is TokenType.SELECT]
    # In `a IS DISTINCT FROM b` it is an operator.
    ends = [
        place
        for place, kind in kinds.items()
        if kind is TokenType.FROM and kinds.get(place - 1) is not TokenType.DISTINCT and selects and place > selects[0]
    ]
    after = tokens[selects[0] + 1].token_type if selects else TokenType.DISTINCT
    is_set = {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT} & {*kinds.values()}
    if len(selects) != 1 or not ends or is_set or after in (TokenType.DISTINCT, TokenType.ALL, TokenType.HINT):
        return {}, 0
    commas = [place for place, kind in kinds.items() if kind is TokenType.COMMA and selects[0] < place < ends[0]]
    named = {}
    for before, end in zip([selects[0], *commas], [*commas, ends[0]], strict=True):
        if kinds.get(end - 2) is TokenType.ALIAS:
            named[tokens[end - 1].text] = query[tokens[before + 1].start : tokens[end - 3].end + 1]
    return named, tokens[ends[0] - 1].end + 1


def _after_group(tokens: list[Token], at: int) -> int:
    """Return the place after the parentheses that open at a place, or after the word there."""
    if tokens[at].token_type is not TokenType.L_PAREN:
        return at + 1
    return places_around(tokens, at + 1)[-1] + 2

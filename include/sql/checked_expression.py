"""Why an expression of a spec is refused: it reads other tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from include.errors import BadInputError
from include.specs.problem import brief
from include.sql.expression import expression_of
from include.sql.refusal import Refusal


def refusals(text: str) -> Iterator[Refusal]:
    """Yield why an expression may not be evaluated.

    >>> [refusal.message for refusal in refusals("amount > (select max(amount) from delta.`/lake/silver/orders`)")]
    ['a query within an expression reads a table in a version that no run records']
    """
    if expression_of(text).has_query:
        message = "a query within an expression reads a table in a version that no run records"
        yield Refusal(message, "join the table as one of the sources, or write one `query` over them")


def require_no_queries(table: str, expressions: Iterable[str]) -> None:
    """Require that the expressions of a table read nothing but the rows that they are given.

    Raises:
        BadInputError: one contains a query.
    """
    for text in expressions:
        for refusal in refusals(text):
            raise BadInputError(f"{table}: the expression {brief(text)} is not run: {refusal.message}", refusal.fix)

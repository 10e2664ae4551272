"""Why an expression of a spec is refused: it reads other rows than it is given, makes rows, or grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millrace.errors import BadInputError
from millrace.specs.problem import brief
from millrace.sql.expression import expression_of
from millrace.sql.growth import growing
from millrace.sql.query.names import is_generator, short
from millrace.sql.refusal import Refusal
from millrace.sql.unordered import unordered

_QUERY = Refusal(
    "a query within an expression reads a table in a version that no run records",
    "join the table as one of the sources, or write one `query` over them",
)


def refusals(text: str, *, is_measure: bool = False) -> Iterator[Refusal]:
    """Yield why an expression may not be evaluated.

    Args:
        text: the expression; what sqlglot cannot parse counts as right.
        is_measure: whether it is evaluated for the rows of a group; else for each row by itself.

    >>> texts = ("amount > (select max(amount) from t)", "explode(items)", "rank() over (order by id)")
    >>> [refusal.message.partition(" ")[0] for text in texts for refusal in refusals(text)]
    ['a', 'EXPLODE(items)', 'a']
    >>> [refusal.message for refusal in refusals("first(o.region)", is_measure=True)]
    ['FIRST(o.region) may be the value of another row in each run']
    """
    sql = expression_of(text)
    if sql.has_query:
        yield _QUERY
        return
    if sql.has_window and not is_measure:
        yield Refusal("a window is not allowed here: this is evaluated for each row", "compute it in a query")
    for node in sql.tree.walk() if sql.tree else ():
        if is_generator(node):
            message = f"{short(node)} makes rows, and an expression gives one value"
            yield Refusal(message, "write a `query`, such as SELECT ... FROM o LATERAL VIEW explode(o.items) x AS item")
    if is_measure and sql.tree:
        yield from unordered(sql.tree)
    yield from growing(text)


def require_no_queries(table: str, expressions: Iterable[str]) -> None:
    """Require that the expressions of a table read nothing but the rows that they are given.

    Raises:
        BadInputError: one contains a query.
    """
    for text in expressions:
        if expression_of(text).has_query:
            raise BadInputError(f"{table}: the expression {brief(text)} is not run: {_QUERY.message}", _QUERY.fix)

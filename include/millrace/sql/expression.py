"""One Spark SQL expression, parsed by sqlglot: its functions, its columns, its aggregates.

sqlglot knows most of Spark's grammar, but not all. What it cannot parse counts as right, since Spark may know it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import cast

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from millrace.sql.query_functions import REFUSED, REFUSED_BARE
from millrace.sql.spark_functions import AGGREGATES, FUNCTIONS, SYNTAX
from millrace.sql.spark_text import SPARK

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_QUANTIFIED = (TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE)
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)
_QUERIES = (TokenType.TABLE, TokenType.VALUES, TokenType.FROM)
"""The words besides SELECT by which a query within parentheses may begin; a column may have such a name, too."""
_AFTER_NAMES = (TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT)
_OPENING, _CLOSING = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_SCOPES = (TokenType.OVER, TokenType.SELECT, TokenType.FROM)
_CLOCK_WORDS = re.compile(r"""["']\s*(now|today|tomorrow|yesterday)(?![a-z])|unix_timestamp\s*\(\s*\)""", re.IGNORECASE)
"""What may read the clock besides functions: Spark also converts the text 'today' to a date."""


class Use(StrEnum):
    """What an expression does with a column, in the words of OpenLineage.

    The last three decide which value or which rows count, and are no part of the value.
    """

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    FILTER = "FILTER"
    WINDOW = "WINDOW"


class SqlExpression:
    """A text that should be an expression.

    >>> sql = expression_of("sum(o.amount) + to_dat(day)")
    >>> (sql.unknown_functions, sql.columns, sql.aggregates)
    (['to_dat'], [('o', 'amount'), ('day',)], ['sum'])
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def unreadable(self) -> str:
        """Why even Spark cannot read it as an expression; empty if Spark may."""
        if not self.text.strip():
            return "there is no expression here"
        if not self._tokens:
            return "a quote is not closed"
        kinds = [token.token_type for token in self._tokens]
        opened, closed = kinds.count(TokenType.L_PAREN), kinds.count(TokenType.R_PAREN)
        if opened != closed:
            return f"parentheses are opened {opened} times and closed {closed} times"
        depths = accumulate((kind in _OPENING) - (kind in _CLOSING) for kind in kinds)
        outside = {kind for kind, depth in zip(kinds, depths, strict=True) if depth == 0}
        is_one = TokenType.SEMICOLON not in outside and (TokenType.COMMA not in outside or TokenType.DCOLON in outside)
        return "" if is_one else "it is more than one"  # after `::` a comma is a part of a type

    @cached_property
    def unknown_functions(self) -> list[str]:
        """The functions that Spark does not have, as written; functions of a catalog (`a.b(...)`) are not checked."""
        return [
            token.text
            for before, token in self._calls
            if token.token_type in _NAMES
            and before not in (TokenType.DOT, TokenType.OVER)
            and token.text.lower() not in FUNCTIONS | SYNTAX
        ]

    @property
    def functions(self) -> list[str]:
        """The name before each parenthesis, as written: functions, and words that look like them."""
        return [token.text for _, token in self._calls if token.token_type not in _QUANTIFIED]

    @property
    def symbols(self) -> list[str]:
        """The words and signs outside of quotes, as written, without those that follow a dot."""
        befores = [None, *self._tokens]
        return [
            token.text
            for before, token in zip(befores, self._tokens, strict=False)
            if token.token_type not in _QUOTED and (before is None or before.token_type is not TokenType.DOT)
        ]

    @cached_property
    def columns(self) -> list[tuple[str, ...]]:
        """The names of columns, each as its parts; none if sqlglot cannot parse the text."""
        return list(dict.fromkeys(name for name, _ in self._column_nodes))

    @property
    def names_its_columns(self) -> bool:
        """Whether `columns` has all columns that it reads.

        >>> expression_of("count(*)").names_its_columns, expression_of("to_json(struct(*))").names_its_columns
        (True, False)
        """
        tree = self.tree
        return tree is not None and tree.find(exp.Query) is None and not has_star(tree)

    @cached_property
    def aggregated_columns(self) -> list[tuple[str, ...]]:
        """The columns that an aggregate reads, also in its filter or order, or a window.

        >>> expression_of("n + sum(o.amount) filter (where paid) / max(o.day) over (order by m)").aggregated_columns
        [('o', 'amount'), ('paid',), ('o', 'day'), ('m',)]
        """
        return list(dict.fromkeys(name for name, node in self._column_nodes if _is_aggregated(node)))

    @cached_property
    def uses(self) -> list[tuple[tuple[str, ...], Use]]:
        """Each column and what the expression does with it; none if sqlglot cannot parse the text.

        >>> sql = expression_of("case when o.paid then sum(o.amount) end")
        >>> [(".".join(name), use.value) for name, use in sql.uses]
        [('o.paid', 'CONDITIONAL'), ('o.amount', 'AGGREGATION')]
        """
        return list(dict.fromkeys((name, use_of(node)) for name, node in self._column_nodes))

    @cached_property
    def aggregates(self) -> list[str]:
        """The aggregates over all rows; none if windows or queries make the scope unclear."""
        return [name for name, _ in self._aggregates()]

    @cached_property
    def nested_aggregates(self) -> list[str]:
        """The aggregates within another aggregate."""
        return [name for name, is_nested in self._aggregates() if is_nested]

    @property
    def has_query(self) -> bool:
        """Whether it contains a query, such as `(select ...)`, `exists(table x)` or `(from x |> ...)`.

        >>> [expression_of(text).has_query for text in ("a in (values 1, 2)", "sum(values)", "extract(day from at)")]
        [True, False, False]
        """
        kinds = [token.token_type for token in self._tokens]
        return any(
            (one is TokenType.SELECT and before is not TokenType.DOT)
            or (before is TokenType.L_PAREN and one in _QUERIES and after not in _AFTER_NAMES)
            for before, one, after in zip([None, *kinds], kinds, [*kinds[1:], None], strict=False)
        )

    @property
    def has_window(self) -> bool:
        """Whether it contains a window, so that its value does not follow from one row."""
        return any(token.token_type is TokenType.OVER for token in self._tokens)

    @property
    def follows_from_row(self) -> bool:
        """Whether it always has the same value for the same row, as far as can be known from the text.

        >>> [expression_of(text).follows_from_row for text in ("abs(n) > 1", "day < 'today'", "n < rand()", "a.f(n)")]
        [True, False, False, False]
        """
        called, symbols = {*map(str.lower, self.functions)}, {*map(str.lower, self.symbols)}
        is_unknown = self.unknown_functions or any(before is TokenType.DOT for before, _ in self._calls)
        is_changing = called & REFUSED.keys() or symbols & REFUSED_BARE or _CLOCK_WORDS.search(self.text)
        reads_other_rows = self.has_window or self.has_query or symbols & {"table", "values"}
        return bool(self._tokens) and not (is_unknown or is_changing or reads_other_rows)

    @property
    def may_aggregate(self) -> bool:
        """Whether it may give one value for many rows."""
        return bool(self.aggregates) or self._has_scopes or any(before is TokenType.DOT for before, _ in self._calls)

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The parsed expression; None if sqlglot cannot parse the text."""
        try:
            return SPARK.parse(self.text)[0]
        except (SqlglotError, IndexError):
            return None

    @cached_property
    def _column_nodes(self) -> list[tuple[tuple[str, ...], exp.Expression]]:
        tree = self.tree
        if tree is None or tree.find(exp.Query):
            return []
        nodes = ((tuple(part.name for part in column.parts), column) for column in tree.find_all(exp.Column, bfs=False))
        return [(name, node) for name, node in nodes if "*" not in name]

    @cached_property
    def _tokens(self) -> list[Token]:
        try:
            return list(SPARK.tokenize(self.text))
        except SqlglotError:
            return []

    @cached_property
    def _calls(self) -> list[tuple[TokenType | None, Token]]:
        """Each word before a parenthesis, with the type of the token before the word."""
        tokens = self._tokens
        return [
            (tokens[at - 1].token_type if at else None, token)
            for at, token in enumerate(tokens[:-1])
            if tokens[at + 1].token_type is TokenType.L_PAREN
        ]

    @property
    def _has_scopes(self) -> bool:
        return any(token.token_type in _SCOPES for token in self._tokens)

    def _aggregates(self) -> Iterator[tuple[str, bool]]:
        """Yield each aggregate, and whether it is within another aggregate."""
        called = {id(token): before for before, token in self._calls}
        within: list[bool] = []
        name = ""
        for token in () if self._has_scopes else self._tokens:
            if token.token_type is TokenType.L_PAREN:
                if name:
                    yield name, any(within)
                within.append(bool(name))
            elif token.token_type is TokenType.R_PAREN and within:
                within.pop()
            word, before = token.text.lower(), called.get(id(token), TokenType.DOT)
            name = word if word in AGGREGATES and before not in (TokenType.DOT, *_QUANTIFIED) else ""


@lru_cache(maxsize=2048)
def expression_of(text: str) -> SqlExpression:
    """Return the expression of a text; one that was seen lately is not parsed again."""
    return SqlExpression(text)


def has_star(tree: exp.Expr) -> bool:
    """Whether it reads all columns of a source, as `struct(*)` does; `count(*)` reads none."""
    return any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, also one that a window uses; `LIKE ANY (...)` is none."""
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, exp.Like | exp.ILike | exp.RegexpLike)
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)


def _is_aggregated(column: exp.Expression) -> bool:
    """Whether an expression around a column is an aggregate or a window."""
    node = cast(exp.Expr, column)
    while parent := node.parent:
        if is_aggregate(parent) or isinstance(parent, exp.Filter | exp.WithinGroup | exp.Window):
            return True
        node = parent
    return False


def use_of(column: exp.Expression) -> Use:
    """Return what the expressions around a column do with it, up to the query around it; a condition counts most."""
    use, node = Use.IDENTITY, cast(exp.Expr, column)
    while (parent := node.parent) and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.If | exp.Case) and node.arg_key == "this":
            return Use.CONDITIONAL
        if isinstance(parent, exp.Filter) and node.arg_key == "expression":
            return Use.FILTER
        if isinstance(parent, exp.Window) and node.arg_key != "this":
            return Use.WINDOW
        if is_aggregate(parent):
            use = Use.AGGREGATION
        elif use is Use.IDENTITY and not isinstance(parent, exp.Paren | exp.Alias):
            use = Use.TRANSFORMATION
        node = parent
    return use

"""What Spark and sqlglot read differently in a query: its text for either of them.

The text for Spark is cut and joined where tokens begin and end, so that all else stays as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_MISREAD = (
    "TO_CHAR", "LOG10", "INSTR", "UNIX_DATE", "PERCENTILE_CONT", "PERCENTILE_DISC", "PARSE_JSON", "DATE_FORMAT",
    "FROM_UNIXTIME", "UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP", "TO_TIMESTAMP",
)  # fmt: skip
"""The functions that sqlglot takes for others, such as `to_char(day, 'MM')` for a cast; it keeps others."""
_CUT = "PERCENTILE"
"""The function of which sqlglot forgets the last argument, how often each value counts."""
_KNOWN = frozenset((
    "ADD_MONTHS", "DATE", "DATEADD", "DATE_ADD", "DATE_SUB", "DATE_TRUNC", "DAY", "DAYOFMONTH", "DAYOFWEEK",
    "DAYOFYEAR", "FROM_UTC_TIMESTAMP", "HOUR", "LAST_DAY", "MINUTE", "MONTH", "QUARTER", "SECOND", "TIMESTAMP",
    "TIMESTAMPADD", "TO_DATE", "TO_UTC_TIMESTAMP", "TRUNC", "WEEKOFYEAR", "YEAR",
))  # fmt: skip
"""The functions of dates and times that `terms` reads as Spark does."""
_WITH_SYNTAX = frozenset(("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM"))
"""The functions that may have words between their arguments."""
_UNITS = frozenset(("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK"))
"""The units that Spark's `trunc` knows; a text of any other gives null, and sqlglot knows more of them."""
_UNITS_OF_TIME = _UNITS | {"DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
_BITS = ((TokenType.PIPE, exp.BitwiseOr), (TokenType.CARET, exp.BitwiseXor), (TokenType.AMP, exp.BitwiseAnd))
"""The operators on bits, the one that binds least first; sqlglot has them and shifts on one level."""
_SHIFTS = (
    ((TokenType.LT, TokenType.LT), exp.BitwiseLeftShift),
    ((TokenType.GT, TokenType.GT), exp.BitwiseRightShift),
)


def _truncation(name: str, unit_at: int, units: frozenset[str]) -> Callable[[list[exp.Expr]], exp.Expr]:
    def build(arguments: list[exp.Expr]) -> exp.Expr:
        unit = arguments[unit_at] if len(arguments) > 1 else None
        if isinstance(unit, exp.Literal) and unit.name.upper() in units:
            truncation: exp.Expr = SparkParser.FUNCTIONS[name](arguments)
            truncation.set("unit", exp.Literal.string(unit.name))  # sqlglot writes it in capitals
            return truncation
        return exp.Anonymous(this=name, expressions=arguments)

    return build


def _to_date(arguments: list[exp.Expr]) -> exp.Expr:
    if len(arguments) > 1:
        return exp.Anonymous(this="TO_DATE", expressions=arguments)  # sqlglot takes YYYY for yyyy
    return exp.TsOrDsToDate(this=arguments[0])


class _SparkAsItIs(Spark):
    """sqlglot's Spark, where that reads another expression than Spark does."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']  # a doubled quote is a quote

    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {
            **{name: build for name, build in SparkParser.FUNCTIONS.items() if name not in _MISREAD},
            "TO_DATE": _to_date,
            "TRUNC": _truncation("TRUNC", 1, _UNITS),
            "DATE_TRUNC": _truncation("DATE_TRUNC", 0, _UNITS_OF_TIME),
        }
        FUNCTION_PARSERS: ClassVar = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name != _CUT
        }
        TERM: ClassVar = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}

        def _parse_bitwise(self, level: int = 0) -> exp.Expr | None:
            if level < len(_BITS):
                kind, operation = _BITS[level]
                this = self._parse_bitwise(level + 1)
                while self._match(kind):
                    this = self.expression(operation(this=this, expression=self._parse_bitwise(level + 1)))
                return this
            this = self._parse_term()
            while shift := next((each for pair, each in _SHIFTS if self._match_pair(*pair)), None):
                this = self.expression(shift(this=this, expression=self._parse_term()))
            return this


SPARK = _SparkAsItIs()


class _SparkTerms(_SparkAsItIs):
    """The same, with each function by its own name but those of dates and times."""

    class Parser(_SparkAsItIs.Parser):
        FUNCTIONS: ClassVar = {name: build for name, build in _SparkAsItIs.Parser.FUNCTIONS.items() if name in _KNOWN}
        FUNCTION_PARSERS: ClassVar = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _WITH_SYNTAX
        }


SPARK_TERMS = _SparkTerms()

_AFTER_QUALIFY = (
    TokenType.WINDOW, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT, TokenType.ORDER_BY, TokenType.SORT_BY,
    TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH,
)  # fmt: skip
_OF_ROWS_KEPT = ("order", "sort", "cluster", "distribute", "limit", "offset")
_KEPT = "_qualifies"


class NoQualifyError(Exception):
    """A query has QUALIFY in a form that cannot be written for Spark; the text says which."""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text in Spark SQL."""
    return list(SPARK.tokenize(text))


def parse_spark(text: str, dialect: Spark = SPARK) -> list[exp.Expr | None]:
    """Return the statements of a text in Spark SQL, as sqlglot parses them in one of the dialects here.

    sqlglot takes WINDOW for the clause where the function `window(...)` follows GROUP BY.

    Raises:
        SqlglotError: sqlglot cannot parse it.

    >>> parse_spark("SELECT count(*) AS n FROM o GROUP BY window(at, '1 hour')")[0].sql("spark")
    "SELECT COUNT(*) AS n FROM o GROUP BY WINDOW(at, '1 hour')"
    """
    tokens = dialect.tokenize(text)
    for token, following in pairwise(tokens):
        if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    statements: list[exp.Expr | None] = dialect.parser().parse(tokens, text)
    return statements


def spark_name(node: exp.Expr) -> str:
    """Return the name that Spark has for a function, in small letters; for another node no name of a function.

    >>> spark_name(exp.ArgMax(this=exp.column("a"), expression=exp.column("b")))
    'max_by'
    """
    return node.sql(dialect="spark").partition("(")[0].lower() if isinstance(node, exp.Func) else ""


def without_semicolon(text: str) -> str:
    """Return a statement without the semicolons that end it.

    >>> without_semicolon("SELECT ';' AS a FROM o -- all; \\n ; ")
    "SELECT ';' AS a FROM o"
    """
    tokens = list(SPARK.tokenize(text))
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        text = text[: tokens.pop(-1).start]
        text = text[: tokens[-1].end + 1] if tokens else text
    return text


def without_qualify(text: str, tree: exp.Expr) -> str:
    """Return a query that Spark can parse: each SELECT with QUALIFY filters itself as a subquery.

    Args:
        text: the query.
        tree: the same, as `parse_spark` returns it.

    Raises:
        NoQualifyError: the subquery might have other rows.

    >>> query = "SELECT a FROM o QUALIFY rank() OVER (ORDER BY a) = 1"
    >>> without_qualify(query, parse_spark(query)[0])
    'SELECT * EXCEPT (_qualifies) FROM (SELECT a, (rank() OVER (ORDER BY a) = 1) AS _qualifies FROM o) WHERE _qualifies'
    """
    selects = [select for select in tree.find_all(exp.Select) if select.args.get("qualify")]
    for select in selects:
        if any(select.args.get(part) for part in _OF_ROWS_KEPT):
            raise NoQualifyError("QUALIFY is not read in one SELECT with ORDER BY or LIMIT")
        if (group := select.args.get("group")) and group.args.get("all"):
            raise NoQualifyError("QUALIFY is not read in one SELECT with GROUP BY ALL")
    kept = _KEPT
    while kept in text.lower():
        kept += "_"
    conditions = [select.args["qualify"].this for select in selects]
    for _ in selects:
        text = _without_last_qualify(text, kept, conditions)
    return text


def _without_last_qualify(text: str, kept: str, conditions: Sequence[exp.Expr]) -> str:
    tokens = SPARK.tokenize(text)
    at = max(place for place, token in enumerate(tokens) if token.token_type is TokenType.QUALIFY)
    around = places_around(tokens, at)
    types = {place: tokens[place].token_type for place in around}
    select = max((place for place in around if place < at and types[place] is TokenType.SELECT), default=at)
    # In `a IS DISTINCT FROM b` it is an operator.
    begins = (place for place in around if select < place < at and types[place] is TokenType.FROM)
    from_ = next((place for place in begins if tokens[place - 1].token_type is not TokenType.DISTINCT), None)
    if from_ is None:
        raise NoQualifyError("QUALIFY is not read in a SELECT that begins with FROM")
    stops = [place for place in around if place > at and types[place] in _AFTER_QUALIFY]
    stop, *_ = [*stops, around[-1] + 1]
    end, *_ = [*(place for place in stops if types[place] is not TokenType.WINDOW), around[-1] + 1]

    def part(first: int, after: int) -> str:
        return text[tokens[first].start : tokens[after - 1].end + 1] if first < after else ""

    condition = part(at + 1, stop)
    if parse_spark(f"SELECT {condition}")[0] not in [exp.select(each) for each in conditions]:
        raise NoQualifyError(f"QUALIFY {condition} is not read here")
    windows = f" {part(stop, end)}" if stop < end else ""
    rest = text[tokens[from_ - 1].end + 1 : tokens[at - 1].end + 1]
    inner = f"{part(select, from_)}, ({condition}) AS {kept}{rest}{windows}"
    before, after = text[: tokens[select].start], text[tokens[end - 1].end + 1 :]
    return f"{before}SELECT * EXCEPT ({kept}) FROM ({inner}) WHERE {kept}{after}"


def places_around(tokens: Sequence[Token], at: int) -> list[int]:
    """Return the places of the tokens that stand within the same parentheses as one of them, and not deeper."""
    depth, depths = 0, []
    for token in tokens:
        depth -= token.token_type is TokenType.R_PAREN
        depths.append(depth)
        depth += token.token_type is TokenType.L_PAREN
    first = max((place for place in range(at) if depths[place] < depths[at]), default=-1) + 1
    last = min((place for place in range(at, len(tokens)) if depths[place] < depths[at]), default=len(tokens))
    return [place for place in range(first, last) if depths[place] == depths[at]]

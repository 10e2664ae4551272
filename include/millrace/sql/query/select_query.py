"""The query of a gold table: one SELECT that reads only its sources, and gives the same rows in each run.

What sqlglot cannot parse is refused, since nobody could say what it reads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from millrace.contracts.spec.values import NAME
from millrace.errors import BadInputError, first_line
from millrace.specs.problem import brief, closest_word, did_you_mean
from millrace.sql.changing_values import changing_values
from millrace.sql.expression import expression_of, has_star
from millrace.sql.growth import growing
from millrace.sql.lost_filters import lost_filters
from millrace.sql.query.names import function_name, output_name
from millrace.sql.query_functions import ROW_GENERATORS
from millrace.sql.refusal import Refusal
from millrace.sql.spark_functions import FUNCTIONS
from millrace.sql.spark_text import NoQualifyError, parse_spark, without_qualify, without_semicolon
from millrace.sql.unordered import unordered

_ACTIONS = (exp.QueryTransform, exp.Command, exp.DML, exp.DDL, exp.Into, exp.Lock)
_PARAMETERS = (exp.Placeholder, exp.Parameter, exp.SessionParameter)
_OTHER_VERSION = ("version", "when", "system_time", "changes")
_OF_SPARK = ("builtin", "system.builtin")
"""What may stand before the name of a function of Spark itself."""


class SelectQuery:
    """A text that should be one query.

    >>> query = query_of("WITH x AS (SELECT day FROM f) SELECT day, count(*) AS n FROM x GROUP BY 1")
    >>> (query.columns, list(query.refusals(["f"])))
    (('day', 'n'), [])
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tree(self) -> exp.Query | None:
        """The parsed query; None if `refusals` says why there is none."""
        return None if isinstance(self._parsed, Refusal) else self._parsed

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of its result, as written; empty where Spark would make up a name."""
        return tuple(output_name(select) for select in self.tree.selects) if self.tree else ()

    @property
    def names_its_columns(self) -> bool:
        """Whether it names each column that it reads."""
        return self.tree is not None and names_columns(self.tree)

    @property
    def spark_text(self) -> str:
        """The same query as Spark can parse it; `refusals` says if there is none."""
        return without_qualify(without_semicolon(self.text), self.tree) if self.tree else self.text

    @cached_property
    def ctes(self) -> dict[str, exp.CTE]:
        """The named subqueries of its WITH clauses, by name in small letters."""
        return {cte.alias.lower(): cte for cte in self.tree.find_all(exp.CTE)} if self.tree else {}

    def refusals(self, aliases: Collection[str], times: Collection[str] = ()) -> Iterator[Refusal]:
        """Yield why it may not be run over sources with these aliases; none if it may.

        Args:
            aliases: the aliases of its sources.
            times: the columns of the sources that are known to be dates or timestamps: what is compared with them is
                a time, too.
        """
        if isinstance(self._parsed, Refusal):
            yield self._parsed
            return
        tree = self._parsed
        try:
            _ = self.spark_text
        except NoQualifyError as error:
            yield Refusal(str(error), "Spark has no QUALIFY: filter a subquery")
        yield from self._wrong_names(tree)
        yield from self._wrong_tables(tree, aliases)
        yield from self._wrong_functions(tree, times)
        yield from growing(self.text)
        yield from lost_filters(tree)
        for node in tree.walk():
            if isinstance(node, _ACTIONS):
                yield Refusal(f"{_sql(node)} does more than read", "a query only selects")
            elif isinstance(node, _PARAMETERS):
                yield Refusal(f"{_sql(node)} has no value in a run", "write the value")
            elif isinstance(node, exp.Join) and node.method == "NATURAL":
                fix = "write USING with the columns to compare"
                yield Refusal("NATURAL JOIN also compares what Millrace adds to each table, such as _batch_token", fix)
            elif isinstance(node, exp.TableSample):
                yield Refusal("TABLESAMPLE gives other rows in each run", "filter by a hash of a column")
            elif isinstance(node, exp.Limit | exp.Offset | exp.Fetch) and not (
                node.parent and node.parent.args.get("order")
            ):
                fix = "add ORDER BY, down to columns that are different in each row"
                yield Refusal(f"{_sql(node).strip()} without ORDER BY may give other rows in each run", fix)

    @cached_property
    def _parsed(self) -> exp.Query | Refusal:
        symbols = expression_of(self.text).symbols
        if "|>" in symbols:
            return Refusal("pipe syntax (|>) is not read here", "write SELECT ... FROM <alias>")
        try:
            text = without_semicolon(self.text)
            statements = parse_spark(text)
        except SqlglotError as error:
            place = _place_of(error) or f": {first_line(error)}"
            fix = "only what can be read can be checked; a name that is a word of SQL needs backticks"
            return Refusal(f"it cannot be read{place}", fix)
        tree = statements[0] if statements else None
        if len(statements) > 1 or ";" in expression_of(text).symbols:
            return Refusal("it is more than one statement", "write one SELECT")
        if "table" in map(str.lower, expression_of(self.text).symbols):
            return Refusal("TABLE is a word that reads other tables", "write SELECT ... FROM <alias>")
        if not isinstance(tree, exp.Query):
            return Refusal("it is no query", "write one SELECT, which may begin with WITH")
        return tree

    def _wrong_names(self, tree: exp.Query) -> Iterator[Refusal]:
        if any(select.is_star for select in tree.selects):
            yield Refusal("the columns of the table are not named", "name them in place of *")
            return
        seen: set[str] = set()
        for select, name in zip(tree.selects, self.columns, strict=True):
            if not name:
                yield Refusal(f"the column {_sql(select)} has no name", f"write {_sql(select)} AS <name>")
            elif not re.fullmatch(NAME, name):
                fix = "small letters, digits and _, a letter first"
                yield Refusal(f"the column {name!r} is not a valid name", fix)
            elif name in seen:
                yield Refusal(f"two columns have the name {name!r}", "rename one of them")
            seen.add(name)

    def _wrong_tables(self, tree: exp.Query, aliases: Collection[str]) -> Iterator[Refusal]:
        names = [cte.alias.lower() for cte in tree.find_all(exp.CTE)]
        for name in dict.fromkeys(names):
            if name in aliases or names.count(name) > 1:
                other = "a source" if name in aliases else "another part of WITH"
                yield Refusal(f"{name!r} in WITH has the name of {other}", "give it another name")
        read = set()
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if isinstance(table.this, exp.Func):
                if (function := function_name(table.this)) not in ROW_GENERATORS:
                    yield Refusal(
                        f"{function}() is no source of a query", "add the table to sources, and use its alias"
                    )
            elif isinstance(table.parent, exp.JoinHint):
                continue
            elif table.db or name not in {*aliases, *names}:
                fix = did_you_mean(name, aliases) if not table.db else "add the table to sources, and use its alias"
                yield Refusal(f"{_sql(table)} is not the alias of a source", fix)
            elif any(table.args.get(key) for key in _OTHER_VERSION):
                yield Refusal(f"{_sql(table)}: a run chooses the version", "leave the version out")
            elif name in self.ctes and _is_too_early(table, self.ctes[name]):
                yield Refusal(f"{name!r} in WITH is read before it is stated", "a part of WITH reads those before it")
            read.add(name)
        for alias in aliases:
            if alias not in read:
                yield Refusal(f"it does not read the source {alias!r}", "remove the source, or read it")

    def _wrong_functions(self, tree: exp.Query, times: Collection[str]) -> Iterator[Refusal]:
        sql = expression_of(self.text)
        for name, reason in changing_values(sql, tree, times).items():
            yield Refusal(f"{name} {reason}")
        added = [dot for dot in tree.find_all(exp.Dot) if isinstance(dot.expression, exp.Func)]
        for dot in added:
            if dot.this.sql().lower() not in _OF_SPARK:
                fix = "compute it in a column of silver, and select this column"
                yield Refusal(
                    f"{_sql(dot.this)}.{function_name(dot.expression)} may give other values in each run", fix
                )
        of_catalog = {id(dot.expression) for dot in added}
        by_name = {node.name.lower() for node in tree.find_all(exp.Anonymous) if id(node) not in of_catalog}
        unknown = by_name & set(map(str.lower, sql.functions)) - FUNCTIONS
        for name in sorted(unknown - {"identifier"}):
            fix = closest_word(name, sorted(FUNCTIONS)) or "Spark has no function of this name"
            yield Refusal(f"unknown function {name!r}", fix)
        yield from unordered(tree)


def names_columns(tree: exp.Query) -> bool:
    """Whether a query names each column that it reads; PIVOT and UNPIVOT make others of them."""
    return not has_star(tree) and tree.find(exp.Pivot) is None


@lru_cache(maxsize=512)
def query_of(text: str) -> SelectQuery:
    """Return the query of a text; one that was seen lately is not parsed again."""
    return SelectQuery(text)


def require_read_only(table: str, text: str, aliases: Collection[str]) -> None:
    """Require that the query of a table may be run.

    Raises:
        BadInputError: it may not; the message has the first reason.
    """
    for refusal in query_of(text).refusals(aliases):
        raise BadInputError(f"{table}: the query {brief(text)} is not run: {refusal.message}", refusal.fix)


def _is_too_early(table: exp.Expr, cte: exp.CTE) -> bool:
    """Whether a table that names a part of WITH stands in this part, or in one before it."""
    parts = cte.parent.expressions if isinstance(cte.parent, exp.With) and not cte.parent.recursive else []
    node: exp.Expr | None = table
    while node is not None and not any(node is part for part in parts):
        node = node.parent
    return node is not None and not any(cte is part for part in itertools.takewhile(lambda p: p is not node, parts))


def _place_of(error: SqlglotError) -> str:
    """Return where sqlglot stopped to read; empty if it does not say it."""
    found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    return " at line {line}, column {col}, near {highlight!r}".format(**found) if found.get("line") else ""


def _sql(node: exp.Expr) -> str:
    text = node.sql(dialect="spark")
    return text if len(text) <= 60 else f"{text[:57]}..."

"""One query of a rule, which names its tables in braces: `SELECT * FROM {table} JOIN {silver.customers} USING (id)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.contracts.spec.expectation import OWN_TABLE, tables_in_braces, with_names
from millrace.errors import first_line
from millrace.sql.spark_functions import FUNCTIONS, SYNTAX
from millrace.sql.spark_text import NoQualifyError, parse_spark, without_qualify, without_semicolon


class Query:
    """A text that should be one query over tables in braces.

    >>> query = Query("SELECT id, to_dat(day) FROM {table} JOIN {silver.orders} o USING (id)")
    >>> (query.error, query.unknown_functions, query.unknown_columns(["id"]))
    ('', ['to_dat'], ['day'])
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def error(self) -> str:
        """Why it is not one query that reads the checked table and other tables in braces; empty if it is one."""
        try:
            trees = parse_spark(self._text)
        except SqlglotError as error:
            return f"it cannot be parsed: {first_line(error)}"
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            return "it is not one SELECT"
        try:
            without_qualify(self._text, trees[0])
        except NoQualifyError as error:
            return f"{error}. Spark has no QUALIFY: filter a subquery"
        if foreign := sorted({table.sql("spark") for table in _foreign_tables(trees[0])}):
            return f"it reads {', '.join(foreign)}, and only tables in braces have an exact version"
        return "" if OWN_TABLE in tables_in_braces(self.text) else "it does not read {table}"

    @property
    def spark_text(self) -> str:
        """The same query over the views that stand for the tables, as Spark can parse it."""
        return without_qualify(self._text, self.tree)

    @property
    def unknown_functions(self) -> list[str]:
        """The functions that Spark does not have."""
        names = (function.name for function in self.tree.find_all(exp.Anonymous))
        return [name for name in dict.fromkeys(names) if name.lower() not in FUNCTIONS | SYNTAX]

    def unknown_columns(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that neither the tables have, which have these columns, nor the query itself names."""
        tree = self.tree
        tables = {
            table.alias_or_name.lower()
            for table in tree.find_all(exp.Table, exp.CTE, exp.Subquery, exp.Lateral, exp.Values)
        }
        own = [alias.alias for alias in tree.find_all(exp.Alias)]
        own += [column.name for alias in tree.find_all(exp.TableAlias) for column in alias.columns]
        own += [parameter.name for function in tree.find_all(exp.Lambda) for parameter in function.expressions]
        known = {name.lower() for name in (*columns, *own)}
        unknown = []
        for parts in dict.fromkeys(
            tuple(part.name for part in column.parts) for column in tree.find_all(exp.Column, bfs=False)
        ):
            # Parts after the name of the column are fields of a struct.
            name = parts[1] if len(parts) > 1 and parts[0].lower() in tables else parts[0]
            if name.lower() not in known and not name.startswith("_") and name != "*":
                unknown.append(".".join(parts))
        return unknown

    @cached_property
    def tree(self) -> exp.Expr:
        """The parsed query, with a view in place of each table in braces; null if it is empty."""
        return parse_spark(self._text)[0] or exp.Null()

    @cached_property
    def _text(self) -> str:
        return without_semicolon(with_names(self.text, view_of))


def view_of(table: str) -> str:
    """Return the name of the view that stands for a table in braces.

    >>> view_of("table"), view_of("silver.customers")
    ('_checked_table', '_checked_silver_customers')
    """
    return f"_checked_{table.replace('.', '_')}"


def _foreign_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield each table of the query, parsed with views, that is neither such a view nor a part of the query."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        is_name = isinstance(table.this, exp.Identifier) and not table.args.get("db")
        if not is_name or (table.name.lower() not in own and not table.name.startswith("_checked_")):
            yield table

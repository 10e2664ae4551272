"""Filters that Spark does not see: it reads `FROM paid WHERE (is_new)` as the table `paid` with the name `WHERE`."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millrace.sql.refusal import Refusal


def lost_filters(tree: exp.Expr) -> Iterator[Refusal]:
    """Yield why a query is not run in which Spark takes a WHERE for the alias of a table, and its columns for names.

    Of a table with as many columns all rows would count; of another one, Spark says that the numbers differ (4.1).

    >>> from sqlglot import parse_one
    >>> texts = ("SELECT 1 FROM f WHERE (a)", "SELECT 1 FROM f AS g WHERE (a)", "SELECT 1 FROM f WHERE (a > b)")
    >>> [[str(each.fix) for each in lost_filters(parse_one(text, dialect="spark"))] for text in texts]
    [['write WHERE a'], [], []]
    """
    for where in tree.find_all(exp.Where):
        select, condition = where.parent, where.this
        names = condition.expressions if isinstance(condition, exp.Tuple) else [condition.unnest()]
        if not isinstance(condition, exp.Paren | exp.Tuple) or not all(
            isinstance(name, exp.Column) and not name.table for name in names
        ):
            continue
        last = [select.args.get("from_"), *select.args.get("joins", [])][-1] if isinstance(select, exp.Select) else None
        # sqlglot writes ON true for a join without a condition.
        if last is None or last.args.get("on", exp.true()) != exp.true() or last.args.get("using") or last.this.alias:
            continue
        text = names[0].sql(dialect="spark")
        yield Refusal(
            f"Spark takes WHERE {condition.sql(dialect='spark')} for a name of the table", f"write WHERE {text}"
        )

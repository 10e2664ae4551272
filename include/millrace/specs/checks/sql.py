"""Check the SQL of the specs: its functions, its columns, and where it aggregates.

Only `lakehouse check` does this, because sqlglot takes half a second to load. Spark finds the same errors later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from sqlglot import exp

from millrace.catalog import Catalog, load_catalog
from millrace.contracts.spec.change_data import SOURCE_TABLE
from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.duration import UNBOUNDED
from millrace.contracts.spec.expectation_arguments import CUSTOM_ERRORS, QUERY, SQL
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.specs.checks.columns import check_columns, unknown_column
from millrace.specs.checks.expectations import check_expectations
from millrace.specs.checks.known_columns import TimeColumns, row_columns, table_columns
from millrace.specs.checks.properties import READERS
from millrace.specs.checks.refresh import columns_of_sources, refresh_defects
from millrace.specs.files import read_spec_file
from millrace.specs.problem import Defect, KeyPath, SpecProblem, SpecsRefusedError, closest_word, did_you_mean
from millrace.sql.changing_values import changing_values
from millrace.sql.checked_expression import refusals
from millrace.sql.expression import expression_of
from millrace.sql.growth import growing
from millrace.sql.lost_filters import lost_filters
from millrace.sql.query.names import function_name, makes_columns
from millrace.sql.query.reader_types import WAY_OUT, reader_type, reader_types
from millrace.sql.query.refresh import in_words, lookback_of, refresh_of
from millrace.sql.query.select_query import SelectQuery, query_of
from millrace.sql.query.trace import Trace
from millrace.sql.query_functions import CLOCKS, SESSIONS, WINDOWS_OF_TIME
from millrace.sql.rule_query import Query
from millrace.sql.spark_functions import FUNCTIONS, WITHOUT_PARENTHESES

_CLOCKS_OF_ROWS = tuple(name for name in CLOCKS if name != "current_time")  # no table has a column of the type TIME
_OF_MESSAGES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")


@dataclass(frozen=True)
class SpecExpression:
    """One expression of a spec.

    Attributes:
        path: its key path.
        text: the SQL.
        columns: the columns that it may name without an alias; None if the table may have more columns.
        is_aggregate: whether it must be an aggregate over many rows; else it must be a value of one row.
        aliases: the aliases that may stand before a column, each with the columns of its table; None as above.
        grouped: SQL expressions that have one value for all rows of a group.
        of_result: columns of the result that it may name -> their SQL. They exist only once the rows are aggregated, so
            that no aggregate and no window can read them.
        is_rule: whether it is the condition of a rule, which judges a row by its own columns alone.
        is_of_moment: whether it may read the clock: a row rule judges a row as of the time at which it came.
        gives_time: whether its value becomes a date or a timestamp.
        has_source_table: whether it may name `_source_table`.
        place: where its columns are; for one of several sources, which.
    """

    path: KeyPath
    text: str
    columns: tuple[str, ...] | None
    is_aggregate: bool = False
    aliases: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    grouped: tuple[str, ...] = ()
    of_result: Mapping[str, str] = field(default_factory=dict)
    is_rule: bool = False
    is_of_moment: bool = False
    gives_time: bool = False
    has_source_table: bool = False
    place: str = "here"


def checked_catalog(folder: Path) -> Catalog:
    """Return the specs of `folder`, if all of them are sound, including their SQL and the project's own expectations.

    Raises:
        SpecsRefusedError: with every problem of every file.
        SpecError: there is no such folder.
    """
    catalog = load_catalog(folder)
    fix = "correct it: a spec cannot name the expectations of this file"
    of_classes = [SpecProblem(file, line, "", None, cause, fix) for file, (line, cause) in CUSTOM_ERRORS.items()]
    if problems := [*catalog.problems, *sql_problems(catalog), *of_classes]:
        raise SpecsRefusedError(problems)
    return catalog


def sql_problems(catalog: Catalog) -> list[SpecProblem]:
    """Return the problems in the SQL of the specs that can be found without Spark.

    A spec that is wrong for another reason is read, too, so that its owner sees all problems at once; but not where it
    has a problem already.
    """
    problems: list[SpecProblem] = []
    reported = {(problem.file, problem.key) for problem in catalog.problems}
    specs = {**{spec.table: spec for spec in catalog.well_formed.values()}, **catalog.specs}
    times = TimeColumns(specs)
    for path, spec in catalog.well_formed.items():
        try:
            defects = _defects_of_spec(spec, specs, times)
        except RecursionError:
            key = "query" if isinstance(spec, GoldSpec) and spec.query else "table"
            message = "its SQL is too long or nested too deeply to be checked"
            defects = [Defect((key,), message, None, "compute parts of it in tables of their own")]
        file = read_spec_file(path) if defects else None
        located = [file.problem(defect) for defect in defects if file]
        problems += [problem for problem in located if (problem.file, problem.key) not in reported]
    return problems


def _defects_of_spec(spec: AnySpec, specs: Mapping[str, AnySpec], times: TimeColumns) -> list[Defect]:
    # An expression of several sources is checked for each of them.
    own, of_sources = times.of(spec.table), times.of_sources(spec)
    found = (_defects(each, own if each.is_rule else of_sources) for each in _expressions(spec, specs))
    defects = list(dict.fromkeys(chain.from_iterable(found)))
    defects += _query_defects(spec, times)
    if isinstance(spec, GoldSpec):
        columns = columns_of_sources(spec, specs)
        defects += [*query_defects(spec, columns, of_sources), *type_defects(spec, columns)]
    return defects + list(refresh_defects(spec, specs) if isinstance(spec, GoldSpec) and not defects else ())


def _defects(expression: SpecExpression, times: frozenset[str]) -> Iterator[Defect]:
    sql = expression_of(expression.text)
    if sql.unreadable:
        yield Defect(expression.path, f"not an expression: {sql.unreadable}", expression.text)
        return
    for refusal in refusals(expression.text, is_measure=expression.is_aggregate):
        fix = "use expect_query_to_return_no_rows" if expression.is_rule and sql.has_query else refusal.fix
        yield Defect(expression.path, refusal.message, expression.text, fix)
    for name in sql.unknown_functions:
        fix = closest_word(name.lower(), sorted(FUNCTIONS)) or "Spark has no function of this name"
        yield Defect(expression.path, f"unknown function {name!r}", expression.text, fix)
    for column in sql.columns:
        name, columns = column[0], expression.columns
        if name in expression.aliases:
            name, columns = (*column, "_")[1], expression.aliases[name]
        if name == SOURCE_TABLE and not expression.has_source_table:
            fix = "write the table as a list, under sources; or a constant"
            yield Defect(expression.path, f"{name!r} is for a table with a list of sources", expression.text, fix)
        if columns is not None and name.lower() not in map(str.lower, columns) and not name.startswith("_"):
            fix = did_you_mean(name, dict.fromkeys(columns))
            message = f"there is no column {'.'.join(column)!r} {expression.place}"
            yield Defect(expression.path, message, expression.text, fix)
    for name in () if expression.is_aggregate else sql.aggregates:
        message = f"the aggregate {name!r} is not allowed here: this is evaluated for each row"
        fix = "use an expectation on the table" if expression.is_rule else "aggregate in the measures of a gold table"
        yield Defect(expression.path, message, expression.text, fix)
    found = changing_values(sql, sql.tree, times, gives_time=expression.gives_time)
    if expression.is_of_moment:
        for name in found.keys() - set(_CLOCKS_OF_ROWS):
            message, fix = f"{name} can give another verdict about the same row", "compare with current_timestamp()"
            yield Defect(expression.path, message, expression.text, fix)
    else:
        yield from _changing(expression.path, expression.text, found, is_rule=expression.is_rule)
    for name in sql.nested_aggregates if expression.is_aggregate else ():
        yield Defect(expression.path, f"the aggregate {name!r} is inside another aggregate", expression.text)
    for name in (column[0] for column in sql.aggregated_columns if len(column) == 1):
        if text := expression.of_result.get(name.lower()):
            message = f"an aggregate or a window cannot read {name!r}, which is a column of the result"
            yield Defect(expression.path, message, expression.text, f"write what it stands for: {text}")
    if not expression.is_aggregate or sql.may_aggregate:
        return
    grouped = {name[-1].lower() for text in expression.grouped for name in expression_of(text).columns}
    ungrouped = next((".".join(name) for name in sql.columns if name[-1].lower() not in grouped), "")
    if ungrouped:
        message = f"{ungrouped} has a value in each row, and one value is needed"
        yield Defect(expression.path, message, expression.text, f"write max({ungrouped}), or another aggregate")


def _expressions(spec: AnySpec, specs: Mapping[str, AnySpec]) -> Iterator[SpecExpression]:
    if isinstance(spec, BronzeSpec) and spec.reads_kafka:
        for name, text in spec.kafka_source.transforms.items():
            # A wrong spec may make a column that it lacks; another check says so.
            gives_time = name in spec.columns and spec.columns[name].type in TIMES
            yield SpecExpression(("source", "transforms", name), text, _OF_MESSAGES, gives_time=gives_time)
    elif isinstance(spec, SilverSpec):
        yield from _of_silver(spec, specs)
    elif isinstance(spec, GoldSpec):
        yield from _of_gold(spec, specs)
    yield from _of_rules(spec, specs)


def _of_silver(spec: SilverSpec, specs: Mapping[str, AnySpec]) -> Iterator[SpecExpression]:
    for index, table in enumerate(spec.source_tables):
        own = spec.sources[index] if spec.sources else None
        # An expression may also name a column of an earlier expression.
        columns, of_source = table_columns(specs.get(table)), spec.of_source(table)
        of_list, place = own is not None, f"in {table}" if own is not None else "here"
        for name, column in of_source.columns.items():
            is_own = own is not None and name in own.columns
            path = ("sources", index, "columns", name) if is_own else ("columns", name, "from")
            if column.expression is not None:
                yield SpecExpression(
                    *(path, column.expression, columns),
                    gives_time=column.type in TIMES,
                    has_source_table=of_list,
                    place=place,
                )
            columns = None if columns is None else (*columns, name)
        for key in ("apply_as_deletes", "apply_as_truncates"):
            is_own = own is not None and getattr(own, key, None) is not None
            if (text := getattr(of_source, key)) is not None:
                of_key: KeyPath = ("sources", index, key) if is_own else (key,)
                yield SpecExpression(of_key, text, columns, has_source_table=of_list, place=place)


def refresh_in_words(spec: AnySpec, specs: Mapping[str, AnySpec]) -> str:
    """Return how a computed table is refreshed, and why; empty for another one, and for groups that state it all."""
    if not isinstance(spec, GoldSpec):
        return ""
    if spec.refresh_from:
        later = "all later values" if spec.reach == UNBOUNDED else f"the {spec.lookback} after it"
        return f"refreshed by {spec.refreshed_group} and {later}" if spec.lookback else ""
    return in_words(traced_refresh(spec, specs), spec.select)


def traced_refresh(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Trace:
    """Return by which columns a computed table is refreshed, as far as the specs say."""
    return refresh_of(spec, columns_of_sources(spec, specs))


def _of_gold(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[SpecExpression]:
    of_sources = columns_of_sources(spec, specs)
    known = [columns for columns in of_sources.values() if columns is not None]
    joined = tuple(chain.from_iterable(known)) if len(known) == len(of_sources) else None
    for alias, source in spec.sources.items():
        if source.where is not None:
            yield SpecExpression(("sources", alias, "where"), source.where, of_sources[alias])
        if source.on is not None:
            yield SpecExpression(("sources", alias, "on"), source.on, joined, aliases=of_sources)
    for alias, text in spec.refresh_from.items():
        yield SpecExpression(("refresh_from", alias), text, of_sources.get(alias))
    for name, text in spec.group_by.items():
        yield SpecExpression(("group_by", name), text, joined, aliases=of_sources)
    # As in silver, a measure may also name a group or an earlier measure, unless a source has a column of that name.
    of_sources_too = {name.lower() for name in joined or ()}
    own = {
        name: text
        for name, text in (*spec.group_by.items(), *spec.measures.items())
        if name.lower() not in of_sources_too
    }
    grouped = (*spec.group_by.values(), *spec.group_by, *own)
    columns = None if joined is None else (*joined, *spec.group_by)
    of_result = {} if joined is None else {name.lower(): text for name, text in own.items()}
    for name, text in spec.measures.items():
        yield SpecExpression(("measures", name), text, columns, True, of_sources, grouped, of_result)
        columns = None if columns is None else (*columns, name)


def _of_rules(spec: AnySpec, specs: Mapping[str, AnySpec]) -> Iterator[SpecExpression]:
    for index, rule in enumerate(spec.expectations):
        if rule.name == SQL and isinstance(condition := rule.arguments.get("condition"), str):
            path = ("expectations", index, rule.name, "condition")
            columns = row_columns(spec) if rule.is_row_rule else table_columns(spec)
            yield SpecExpression(path, condition, columns, is_rule=True, is_of_moment=rule.is_row_rule)
        of_table = {"measure": spec.table, "source_measure": str(rule.arguments.get("source"))}
        for key, table in of_table.items():
            if isinstance(text := rule.arguments.get(key), str):
                yield SpecExpression(
                    ("expectations", index, rule.name, key), text, table_columns(specs.get(table)), True
                )


def _query_defects(spec: AnySpec, times: TimeColumns) -> Iterator[Defect]:
    for index, rule in enumerate(spec.expectations):
        if rule.name != QUERY or not isinstance(text := rule.arguments.get("query"), str):
            continue
        path, query = ("expectations", index, rule.name, "query"), Query(text)
        if query.error:
            fix = "write one SELECT that names its tables in braces: {table}, {silver.customers}"
            yield Defect(path, f"not a query of a rule: {query.error}", text, fix)
            continue
        tables = (spec.table, *rule.other_tables)
        of_time = frozenset().union(*map(times.of, tables))
        yield from _changing(path, text, changing_values(expression_of(text), query.tree, of_time), is_rule=True)
        for refusal in (*growing(query.spark_text), *lost_filters(query.tree)):
            yield Defect(path, refusal.message, text, refusal.fix)
        for name in query.unknown_functions:
            fix = closest_word(name.lower(), sorted(FUNCTIONS)) or "Spark has no function of this name"
            yield Defect(path, f"unknown function {name!r}", text, fix)
        of_tables = [table_columns(times.specs.get(table)) for table in tables]
        known = [columns for columns in of_tables if columns is not None]
        if len(known) == len(of_tables):
            columns = list(dict.fromkeys(chain.from_iterable(known)))
            for name in query.unknown_columns(columns):
                yield Defect(path, f"there is no column {name!r} here", text, did_you_mean(name, columns))


def _changing(path: KeyPath, text: str, found: Mapping[str, str], *, is_rule: bool) -> Iterator[Defect]:
    """Yield what gives other rows in each run, or by which a rule could give two results for the same version."""
    for name, reason in found.items():
        if is_rule:
            message = f"{name} can give another result for the same version"
            yield Defect(path, message, text, "compare with a column instead")
        else:
            yield Defect(path, f"{name} {reason}", text)


def query_defects(
    spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None], times: Collection[str]
) -> Iterator[Defect]:
    """Yield what is wrong with the query of a table; nothing for a table without one.

    Args:
        spec: the spec of the table.
        columns: alias -> the columns of its table; None if they are not known.
        times: the columns of these tables that are known to be dates or timestamps.
    """
    if spec.query is None:
        return
    query = query_of(spec.query)
    for refusal in query.refusals(spec.sources, times):
        yield Defect(("query",), refusal.message, None, refusal.fix)
    if query.tree is None:
        return
    yield from _unknown_columns(query, columns)
    document = {**spec.model_dump(mode="json", by_alias=True), "measures": dict.fromkeys(query.columns, "")}
    yield from check_columns(document)
    yield from check_expectations(document)
    if not spec.refresh_columns:
        return
    if unknown := [name for name in spec.refresh_columns if name not in query.columns]:
        yield unknown_column(("refresh_by",), unknown[0], list(query.columns), "the query")
    elif reason := refresh_of(spec, columns).reason:
        which = "this column" if len(spec.refresh_columns) == 1 else "these columns"
        message = f"the query cannot be refreshed by {which}: {reason}"
        needed = lookback_of(spec, columns)
        fix = f"write `lookback: {needed}`" if needed else "write `refresh: full`, or change the query"
        yield Defect(("refresh_by",), message, ", ".join(spec.refresh_columns), fix)


def type_defects(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Iterator[Defect]:
    """Yield the computed columns that are known to be of a type that raises the table's reader version.

    Args:
        spec: the spec of the table.
        columns: alias -> the columns of its table; None if they are not known.
    """
    found: list[tuple[KeyPath, str, str]] = []
    for name, kind in reader_types(spec.query, columns).items() if spec.query else ():
        found.append((("query",), name, kind))
    for key, expressions in (("group_by", spec.group_by), ("measures", spec.measures)):
        found += [((key, name), name, reader_type(expression_of(text).tree)) for name, text in expressions.items()]
    for path, name, kind in found:
        if kind:
            message = f"the column {name!r} is a {kind}, which raises the table's reader version: {READERS}"
            yield Defect(path, message, None, WAY_OUT[kind])


def _unknown_columns(query: SelectQuery, columns: Mapping[str, tuple[str, ...] | None]) -> Iterator[Defect]:
    """Yield the names that no source and no part of the query has.

    A name in a CTE may hide a column, so this finds less than Spark does, and nothing that Spark would accept.
    """
    tree = query.tree
    if tree is None:
        return
    renamed = {table.alias.lower(): table.name.lower() for table in tree.find_all(exp.Table) if table.alias}
    hidden = {*query.ctes, *(node.alias.lower() for node in tree.find_all(exp.Subquery, exp.Lateral, exp.Values))}
    named = {node.name.lower() for node in tree.find_all(exp.Identifier) if not isinstance(node.parent, exp.Column)}
    of_any = {name for table in columns.values() for name in table or ()}
    makes_names = any(isinstance(node, exp.Pivot | exp.UDTF) or makes_columns(node) for node in tree.walk())
    names_are_known = not makes_names and None not in columns.values()
    made = {function_name(node) for node in tree.find_all(exp.Anonymous)} & {WINDOWS_OF_TIME, SESSIONS}
    tables = {*renamed, *hidden, *(table.name.lower() for table in tree.find_all(exp.Table))}
    for column in dict.fromkeys(tree.find_all(exp.Column)):
        # Parts after the name of the column are fields of a struct.
        first, *others = (part.name.lower() for part in column.parts)
        alias, name = (first, others[0]) if others and first in tables else ("", first)
        source = renamed.get(alias, alias)
        known = columns.get(source) if alias not in hidden else None
        if name.startswith("_") or isinstance(column.this, exp.Star) or (alias and alias in of_any):
            continue
        if known is not None and name not in known:
            fix = did_you_mean(name, known)
            yield Defect(("query",), f"the source {source!r} has no column {name!r}", None, fix)
        elif not alias and names_are_known and name not in {*of_any, *named, *made, *WITHOUT_PARENTHESES}:
            yield Defect(("query",), f"no source has a column {name!r}", None, did_you_mean(name, sorted(of_any)))

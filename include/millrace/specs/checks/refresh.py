"""Check how the groups of a gold table are refreshed: that a changed row touches the groups to which it belongs.

A run computes the groups whose value of `refresh_by` a changed row affects. Which value that is follows from the joins
and the expression of the group, if both can be traced; else `refresh_from` states it, and only the data can prove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from millrace.contracts.spec.column_types import TEXTUAL, TIMES
from millrace.contracts.spec.duration import UNBOUNDED
from millrace.contracts.spec.nested_type import is_nested
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.specs.checks.known_columns import table_columns
from millrace.specs.problem import Defect
from millrace.sql.expression import expression_of
from millrace.sql.query.groups import groups_as_query
from millrace.sql.query.names import UntraceableError
from millrace.sql.query.reach import in_words
from millrace.sql.query.refresh import has_other_value, lookback_of, reach_of_measures, refresh_of, value_of_column
from millrace.sql.query.trace import Trace


def refresh_defects(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[Defect]:
    """Yield what makes a run leave stale groups, whatever the data are."""
    if spec.refreshed_group not in spec.group_by:
        return  # the query of a table is checked as a whole
    columns = columns_of_sources(spec, specs)
    group, text = spec.refreshed_group, spec.group_by[spec.refreshed_group]
    value = value_of_column(spec.select, group, columns)
    kind = _type_of(value, spec, specs)
    if spec.lookback and kind and kind not in (TEXTUAL if spec.reach == UNBOUNDED else TIMES):
        fix = "group by a date or a timestamp" + (", or write `unbounded`" if kind in TEXTUAL else "")
        yield Defect(("lookback",), f"{group} is {kind}, which does not go back in time", spec.lookback, fix)
    read = {column.table for column in value.find_all(exp.Column)} if value else set()
    if alias := next((alias for alias, source in spec.sources.items() if source.lookup and alias in read), ""):
        message = f"a row of the lookup {alias!r} may belong to many values of refresh_by, so that it cannot give them"
        yield Defect(("group_by", group), message, text, f"compute {group} from {next(iter(spec.sources))}")
    if is_nested(kind) or kind == "binary":
        function = "to_json" if is_nested(kind) else "hex"
        fix = f"write {function}({text}), and the same in refresh_from; or refresh by another group"
        yield Defect(("refresh_by",), f"{group} is {kind}, by whose values no run can choose rows", group, fix)
    windows, found = list(_windows(spec, columns)), refresh_of(spec, columns)
    yield from windows
    if found.reason and not windows:
        yield from _untraced(spec, found, lookback_of(spec, columns))
    yield from _joins(spec, found)


def refresh_notes(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[str]:
    """Yield what is stated and not used, and which entries of `refresh_from` only the data can prove."""
    looked_up = [alias for alias, source in spec.sources.items() if source.lookup]
    if not spec.refresh_from and not looked_up:
        return
    found, of_data = refresh_of(spec, columns_of_sources(spec, specs)), []
    for alias in looked_up:
        if lookups := found.lookups.get(alias):
            by = " or ".join(map(str, lookups))
            yield f"{spec.table}: sources.{alias}.lookup is not used: what a change affects is found by {by}"
    for alias, text in spec.refresh_from.items():
        if alias not in found.expressions:
            of_data.append(f"refresh_from.{alias}")
        elif has_other_value(found, alias, text):
            traced = " and ".join(found.expressions[alias]).replace("`", "")
            yield f"{spec.table}: refresh_from.{alias} is not used: {spec.refreshed_group} is traced to {traced} of it"
    if of_data:
        yield (
            f"{spec.table}: the spec does not prove that {' and '.join(of_data)} always gives {spec.refreshed_group}; "
            f"`lakehouse verify {spec.table}` compares the rows with its sources."
        )


def columns_of_sources(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> dict[str, tuple[str, ...] | None]:
    """Return alias -> the columns of its table; None if they are not known."""
    return {alias: table_columns(specs.get(source.table)) for alias, source in spec.sources.items()}


def _windows(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Iterator[Defect]:
    """Yield the measures with windows over groups that a run does not compute together."""
    group, earlier = spec.group_by[spec.refreshed_group], dict[str, str]()
    message, fix = "this window looks at groups that are not computed again together", f"add `partition by {group}`"
    for name, text in spec.measures.items():
        if expression_of(text).has_window:
            query = groups_as_query(spec.sources, spec.group_by, {**earlier, name: text})
            try:
                reach = reach_of_measures(query, spec.refreshed_group, columns)
            except UntraceableError as error:
                yield Defect(("measures", name), f"{message}: {error}", text, f"{fix} to it")
            else:
                if reach > spec.reach:
                    lookback = f"write `lookback: {in_words(reach)}`"
                    yield Defect(("measures", name), message, text, f"{fix} to it, or {lookback}")
        else:
            earlier[name] = text


def _untraced(spec: GoldSpec, found: Trace, lookback: str) -> Iterator[Defect]:
    """Yield that rows further back are joined, or that nothing says what a changed row affects."""
    fix = f"write `lookback: {lookback}`"
    if spec.lookback and lookback:
        message = f"rows that are further back than `lookback: {spec.lookback}` are joined"
        yield Defect(("lookback",), message, spec.lookback, fix)
    elif not spec.refresh_from:
        stated = "state in refresh_from, for each source, the value that a changed row affects"
        message = f"the groups cannot be refreshed by this column: {found.reason}"
        yield Defect(("refresh_by",), message, spec.refreshed_group, fix if lookback else stated)


def _joins(spec: GoldSpec, found: Trace) -> Iterator[Defect]:
    """Yield the sources that are joined by nothing of what is stated in their `refresh_from`."""
    for alias, text in spec.refresh_from.items():
        on = spec.sources[alias].on
        if on is None or alias in found.expressions or found.reason:
            continue
        own = {parts[-1].lower() for parts in expression_of(text).columns}
        if not own or own & {part.lower() for parts in expression_of(on).columns for part in parts}:
            continue
        group = spec.group_by[spec.refreshed_group]
        message = (
            f"sources.{alias}.on joins rows with other values of {spec.refreshed_group}: it does not compare this value"
        )
        fix = (
            f"add `and <{alias}.column> = {group}` to sources.{alias}.on; or, if a row of it belongs to many values,"
            f" write sources.{alias}.lookup: true in place of refresh_from.{alias}"
        )
        yield Defect(("refresh_from", alias), message, text, fix)


def _type_of(value: exp.Expr | None, spec: GoldSpec, specs: Mapping[str, AnySpec]) -> str:
    """Return the type of a value; empty if it is not a column whose type a spec states."""
    source = spec.sources.get(value.table) if isinstance(value, exp.Column) else None
    of_table = specs.get(source.table) if source else None
    column = of_table.columns.get(value.name) if isinstance(of_table, SilverSpec) and value else None
    return column.type if column else ""

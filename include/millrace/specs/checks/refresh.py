"""Check that a changed row of a source touches the groups to which it belongs: else gold keeps stale rows.

A run computes the groups whose value of `refresh_by` is the value of `refresh_from` in a changed row. So in each joined
row, `refresh_from` of every source must have the value of `refresh_by`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from sqlglot import exp

from millrace.contracts.spec.duration import UNBOUNDED
from millrace.contracts.spec.nested_type import is_nested
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.specs.problem import Defect
from millrace.sql.expression import expression_of
from millrace.sql.query.names import UntraceableError
from millrace.sql.query.reach import in_words, reach_of_join, reach_of_window, sum_of
from millrace.sql.values.counter_example import counter_example
from millrace.sql.values.terms import (
    columns_of,
    conjuncts,
    equalities,
    is_same,
    needed_columns,
    rewritten,
    term_of,
)

_NONE = timedelta()
_TIMES = frozenset(("date", "timestamp"))
_ORDERED = _TIMES | {"tinyint", "smallint", "int", "bigint", "string"}
"""The types by whose values a run can select all later ones."""


class Proof(StrEnum):
    """What is known of the statement that two expressions always have the same value."""

    HOLDS = "holds"
    FAILS = "fails"
    UNPROVED = "unproved"


@dataclass(frozen=True)
class RefreshProof:
    """What is known of one source.

    Attributes:
        alias: the source.
        proof: whether its `refresh_from` has the value of `refresh_by` in each joined row.
        message: why it has not; empty if that is not known.
        fix: the likely fix.
        reach: how much earlier than the value of `refresh_by` it may be.
    """

    alias: str
    proof: Proof
    message: str = ""
    fix: str = ""
    reach: timedelta = _NONE


def refresh_proofs(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> list[RefreshProof]:
    """Return what is known of each source of a gold table that has a `refresh_from`; `specs` has all specs by table."""
    if spec.refreshed_group not in spec.group_by:
        return []  # a query is traced instead
    joins = _Joins(spec, spec.refreshed_group, specs)
    return [joins.proof(alias) for alias in spec.sources if alias in spec.refresh_from]


def refresh_defects(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[Defect]:
    """Yield what makes a run leave stale groups, whatever the data are."""
    if spec.refreshed_group not in spec.group_by:
        return
    proofs = refresh_proofs(spec, specs)
    yield from _lookback(spec, specs)
    yield from _kind_of_group(spec, specs)
    yield from _windows(
        spec, _Joins(spec, spec.refreshed_group, specs), max((each.reach for each in proofs), default=_NONE)
    )
    for proof in proofs:
        if proof.proof is Proof.FAILS:
            yield Defect(("refresh_from", proof.alias), proof.message, spec.refresh_from[proof.alias], proof.fix)


def unproved_refreshes(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> tuple[str, ...]:
    """Return a note on the sources of which only the data can say that their changes touch the right groups."""
    aliases = [f"refresh_from.{proof.alias}" for proof in refresh_proofs(spec, specs) if proof.proof is Proof.UNPROVED]
    if not aliases:
        return ()
    return (
        f"{spec.table}: the spec does not prove that {' and '.join(aliases)} always gives {spec.refreshed_group}; "
        f"`lakehouse verify {spec.table}` compares the rows with its sources.",
    )


def _lookback(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[Defect]:
    """Yield that the values of `refresh_by` cannot be counted back, if the spec states their type."""
    kind = _Joins(spec, spec.refreshed_group, specs).type_of_group()
    if spec.lookback and kind and kind not in (_ORDERED if spec.reach == UNBOUNDED else _TIMES):
        fix = "group by a date or a timestamp" + (", or write `unbounded`" if kind in _ORDERED else "")
        yield Defect(
            ("lookback",), f"{spec.refreshed_group} is {kind}, which does not go back in time", spec.lookback, fix
        )


def _kind_of_group(spec: GoldSpec, specs: Mapping[str, AnySpec]) -> Iterator[Defect]:
    """Yield that `refresh_by` cannot choose rows: it comes from a lookup, or has a type whose texts choose none."""
    joins, group = _Joins(spec, spec.refreshed_group, specs), spec.group_by[spec.refreshed_group]
    kind = joins.type_of_group()
    if alias := joins.lookup_of_group():
        message = f"a row of the lookup {alias!r} may belong to many values of refresh_by, so that it cannot give them"
        fix = f"compute {spec.refreshed_group} from {next(iter(spec.sources))}"
        yield Defect(("group_by", spec.refreshed_group), message, group, fix)
    if is_nested(kind) or kind == "binary":
        function = "to_json" if is_nested(kind) else "hex"
        fix = f"write {function}({group}), and the same in refresh_from; or refresh by another group"
        message = f"{spec.refreshed_group} is {kind}, by whose values no run can choose rows"
        yield Defect(("refresh_by",), message, spec.refreshed_group, fix)


def _windows(spec: GoldSpec, joins: _Joins, of_joins: timedelta) -> Iterator[Defect]:
    """Yield the measures with windows over groups that a run does not compute together."""
    group = spec.group_by[spec.refreshed_group]
    for name, text in spec.measures.items():
        message, fix = "this window looks at groups that are not computed again together", f"add `partition by {group}`"
        try:
            reach = joins.reach_of_windows(text)
        except UntraceableError as error:
            yield Defect(("measures", name), f"{message}: {error}", text, f"{fix} to it")
            continue
        if reach and (reach := sum_of(reach, of_joins)) > spec.reach:
            yield Defect(("measures", name), message, text, f"{fix} to it, or write `lookback: {in_words(reach)}`")


class _Joins:
    """The sources of one gold table: what their rows have in common where they are joined."""

    def __init__(self, spec: GoldSpec, refresh_by: str, specs: Mapping[str, AnySpec]) -> None:
        self._spec = spec
        self._refresh_by = refresh_by
        self._of_tables = {alias.lower(): specs.get(source.table) for alias, source in spec.sources.items()}

    def proof(self, alias: str) -> RefreshProof:
        """Return what is known of one source."""
        spec = self._spec
        wanted, given = spec.group_by[self._refresh_by], spec.refresh_from[alias]
        group = term_of(wanted, self._resolve)
        refreshed = self._own_term(alias, given)
        if refreshed is None or group is None:
            return RefreshProof(alias, Proof.UNPROVED)
        conditions, types = list(self._conditions(alias)), self._types()
        parts = [part for condition in conditions if condition for part in conjuncts(condition)]
        pairs = [pair for part in parts for pair in equalities(part, types)]
        refreshed_value, group_value = rewritten(refreshed, pairs), rewritten(group, pairs)
        proof = Proof.HOLDS if is_same(refreshed_value, group_value, types) else Proof.UNPROVED
        if proof is Proof.UNPROVED and None not in conditions:
            limits = [rewritten(part, pairs) for part in parts]
            if example := counter_example(refreshed_value, group_value, types, limits, spec.reach):
                message = f"refresh_by: {self._refresh_by} gives {wanted}, but refresh_from.{alias} gives {given}"
                fix = f"give the value of {self._refresh_by}: else a change leaves its own group stale"
                return RefreshProof(alias, Proof.FAILS, f"{message}: {example}", fix)
        on = spec.sources[alias].on
        condition, columns = term_of(on, self._resolve) if on else None, columns_of(refreshed)
        reach = reach_of_join(conjuncts(condition), group, refreshed) if spec.lookback and condition else None
        if reach is not None and proof is Proof.UNPROVED:
            if reach <= spec.reach:
                return RefreshProof(alias, Proof.HOLDS, reach=reach)
            message = f"sources.{alias}.on joins rows that are further back than `lookback: {spec.lookback}`"
            return RefreshProof(alias, Proof.FAILS, message, f"write `lookback: {in_words(reach)}`")
        if proof is Proof.HOLDS or condition is None or not columns or columns & columns_of(condition):
            return RefreshProof(alias, proof)
        own = refreshed.sql(dialect="spark").replace("`", "")
        message = (
            f"sources.{alias}.on joins rows with other values of {self._refresh_by}: it does not compare this value"
        )
        fix = (
            f"add `and {own} = {wanted}` to sources.{alias}.on; or, if a row of it belongs to many values, write"
            f" sources.{alias}.lookup: true in place of refresh_from.{alias}"
        )
        return RefreshProof(alias, Proof.FAILS, message, fix)

    def type_of_group(self) -> str:
        """Return the type of `refresh_by`; empty if it is not a column whose type a spec states."""
        term = term_of(self._spec.group_by[self._refresh_by], self._resolve)
        return self._types().get(term.name, "") if isinstance(term, exp.Column) else ""

    def lookup_of_group(self) -> str:
        """Return the alias of a lookup from which `refresh_by` is computed; empty if there is none."""
        term = term_of(self._spec.group_by[self._refresh_by], self._resolve)
        aliases = {column.partition(".")[0] for column in columns_of(term)} if term else set()
        return next((alias for alias, source in self._spec.sources.items() if source.lookup and alias in aliases), "")

    def reach_of_windows(self, measure: str) -> timedelta:
        """Return how far before a value of `refresh_by` the rows are that the windows of a measure see.

        Raises:
            UntraceableError: they may be later ones.
        """
        spec, own = self._spec, f".{self._refresh_by.lower()}"
        group = term_of(spec.group_by[self._refresh_by], self._name)
        term = term_of(measure, lambda parts: own if parts == (self._refresh_by,) else self._name(parts))
        if term is None or group is None:
            if expression_of(measure).has_window:
                raise UntraceableError("it cannot be read")
            return _NONE
        same = [group, exp.column(exp.to_identifier(own, quoted=True))]
        windows = [(each, each.args.get("partition_by") or ()) for each in term.find_all(exp.Window)]
        across = [window for window, keys in windows if not any(key in same for key in keys)]
        reaches = (reach_of_window(window, same.__contains__, self._refresh_by) for window in across)
        return max(reaches, default=_NONE)

    def _conditions(self, alias: str) -> Iterator[exp.Expr | None]:
        """Yield what is true of each joined row that has a row of the source; None for what cannot be read."""
        needed = {alias.lower()}
        for name, source in reversed(self._spec.sources.items()):
            condition = term_of(source.on, self._resolve) if source.on else None
            if not (source.join == "inner" or name.lower() in needed or source.on is None):
                continue
            if source.on:
                yield condition
            if source.where:
                yield self._own_term(name, source.where)
            # A row of a source exists only together with the rows of which its condition needs a value.
            if condition is not None:
                needed |= {column.partition(".")[0] for column in needed_columns(condition)}

    @staticmethod
    def _own_term(alias: str, text: str) -> exp.Expr | None:
        """Return the term of an expression over the columns of one source."""
        return term_of(text, lambda parts: ".".join((alias, *parts)))

    def _resolve(self, parts: tuple[str, ...]) -> str | None:
        first, *rest = parts
        if rest and first.lower() in self._of_tables:
            return ".".join(parts)
        owners = [alias for alias, spec in self._of_tables.items() if _may_have(spec, first)]
        return ".".join((owners[0], *parts)) if len(owners) == 1 else None

    def _name(self, parts: tuple[str, ...]) -> str:
        """Return the full name of a column, or a name of its own for what may be another measure."""
        return self._resolve(parts) or ".".join(parts)

    def _types(self) -> dict[str, str]:
        """Return full name of a column -> its type, for the tables whose specs state it."""
        return {
            f"{alias}.{name}".lower(): column.type
            for alias, spec in self._of_tables.items()
            if isinstance(spec, SilverSpec)
            for name, column in spec.columns.items()
        }


def _may_have(spec: AnySpec | None, column: str) -> bool:
    if isinstance(spec, SilverSpec):
        return column.lower() in map(str.lower, spec.stored_columns)
    if not isinstance(spec, GoldSpec):
        return True
    return column.lower() in map(str.lower, (*spec.group_by, *spec.measures, *spec.query_columns))

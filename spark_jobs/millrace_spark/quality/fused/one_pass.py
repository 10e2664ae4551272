"""Compute the figures that table rules need, in one query for any number of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame

from millrace_spark.quality.fused.adjustments import Adjustment, Facts, differing
from millrace_spark.quality.fused.change import Adjusted, VersionChange, adjust_by_change, together
from millrace_spark.quality.fused.changed_values import add_differences, differences
from millrace_spark.quality.fused.groups import OF_GROUPS, Group, group_figure, group_totals
from millrace_spark.quality.fused.other_tables import Reference, add_missing, missing_rows, more_missing_rows

GATE_CONF = {
    # Adaptive execution runs each shuffle as its own job; the shuffles here are small, and one job is promised.
    "spark.sql.adaptive.enabled": "false",
    # By default Spark interprets queries with a hundred figures or more instead of compiling them.
    "spark.sql.codegen.maxFields": "2000",
}
"""The Spark settings of a session that checks a version."""


@dataclass(frozen=True)
class Figures:
    """The figures that a rule needs.

    Attributes:
        flat: figure -> aggregate over all rows. Rules that share a figure give it the same name.
        groups: combinations of columns; `group_figure` names their figures.
        adjust: figure -> how it follows from that of an earlier version; a figure without it is computed from all rows.
        references: columns whose values must exist in another table; `Reference.missing` names the figure of each.
    """

    flat: Mapping[str, Column] = field(default_factory=dict)
    groups: frozenset[Group] = frozenset()
    adjust: Mapping[str, Adjustment] = field(default_factory=dict)
    references: frozenset[Reference] = frozenset()

    @property
    def names(self) -> set[str]:
        """The names of all these figures."""
        of_groups = {group_figure(group, figure) for group in self.groups for figure in OF_GROUPS}
        return {*self.flat, *of_groups, *(reference.missing for reference in self.references)}


@dataclass(frozen=True)
class ComputedFigures:
    """The figures of a version.

    Attributes:
        facts: the figures.
        adjusted: the names of those that follow from an earlier version; all rows were read for the others.
        lasting: those from which figures of the next version can follow.
        wrong: the figures that followed from an earlier version, and differ from those of all rows: figure -> the
            value that followed, and that of all rows.
    """

    facts: Facts = field(default_factory=dict)
    adjusted: frozenset[str] = frozenset()
    lasting: Facts = field(default_factory=dict)
    wrong: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def compute_figures(df: DataFrame, figures: Iterable[Figures], change: VersionChange | None = None) -> ComputedFigures:
    """Compute the figures of several rules, each figure once.

    One query reads the rows that changed, and one the version: the rows whose values changed in number, and all rows
    for the remaining figures. There is no query that is not needed. A change that is a proof also computes all figures
    from all rows, and returns these.

    Args:
        df: all rows of the version.
        figures: the figures of each rule.
        change: what changed since an earlier version; None computes all figures from all rows.

    Raises:
        PySparkException: an aggregate cannot be computed, or the frame cannot be read.
    """
    of_rules = list(figures)
    computed = _compute(df, of_rules, change)
    if change is None or not change.is_proof:
        return computed
    whole = _compute(df, of_rules, None)
    return replace(whole, wrong=differing({name: computed.facts[name] for name in computed.adjusted}, whole.facts))


def _compute(df: DataFrame, of_rules: Sequence[Figures], change: VersionChange | None) -> ComputedFigures:
    flat = {name: figure for rule in of_rules for name, figure in rule.flat.items()}
    adjust = {name: adjustment for rule in of_rules for name, adjustment in rule.adjust.items()}
    groups = sorted({group for rule in of_rules for group in rule.groups})
    references = list({reference.missing: reference for rule in of_rules for reference in rule.references}.values())
    adjusted = adjust_by_change(change, flat, adjust, groups, references) if change else Adjusted()
    remaining = {name: figure for name, figure in flat.items() if name not in adjusted.flat}
    facts, by_change = _of_version(df, remaining, groups, references, adjusted)
    of_groups = [group_figure(group, figure) for group in groups for figure in OF_GROUPS]
    missing = [reference.missing for reference in references]
    everything = {**facts, **by_change, **adjusted.flat}
    lasting = {name: everything[name] for name in (*adjust, *of_groups, *missing)}
    return ComputedFigures(everything, frozenset({*by_change, *adjusted.flat}), lasting)


def _of_version(
    df: DataFrame,
    flat: Mapping[str, Column],
    groups: Sequence[Group],
    references: Sequence[Reference],
    adjusted: Adjusted,
) -> tuple[Facts, Facts]:
    """Return the figures by all rows, and those of groups and references by the combinations that changed."""
    numbers = {group: number for number, group in enumerate(groups)}
    places = {reference: number for number, reference in enumerate(references, start=len(groups))}
    frames = [df.agg(*(figure.alias(f"flat_{number}") for number, figure in enumerate(flat.values())))] if flat else []
    frames += [group_totals(df, group, numbers[group]) for group in groups if group not in adjusted.values]
    frames += [missing_rows(df, each, places[each]) for each in references if each not in adjusted.references]
    frames += [
        differences(df, adjusted.feed, group, changed, numbers[group])
        for group, changed in adjusted.values.items()
        if adjusted.feed and changed.hashes
    ]
    frames += [
        more_missing_rows(df, reference, changed, places[reference])
        for reference, changed in adjusted.references.items()
        if changed.is_any
    ]
    values = collect_together(frames)
    by_change: dict[str, Any] = {}
    for group in adjusted.values:
        by_change |= add_differences(adjusted.before, values, group, numbers[group])
    for reference in adjusted.references:
        by_change |= add_missing(adjusted.before, values, reference, places[reference])
    wrong = [group for group in adjusted.values if group_figure(group, "rows") not in by_change]
    of_others = [reference for reference in adjusted.references if reference.missing not in by_change]
    values |= collect_together(
        [
            *(group_totals(df, group, numbers[group]) for group in wrong),
            *(missing_rows(df, reference, places[reference]) for reference in of_others),
        ]
    )
    facts = {name: values.get(f"flat_{number}") for number, name in enumerate(flat)}
    for group in groups:
        if group in wrong or group not in adjusted.values:
            facts |= {group_figure(group, figure): values.get(f"{figure}_{numbers[group]}") for figure in OF_GROUPS}
    for reference in references:
        if reference.missing not in by_change:
            facts[reference.missing] = values[f"missing_{places[reference]}"]
    return facts, by_change


def collect_together(frames: Sequence[DataFrame]) -> dict[str, Any]:
    """Return the values of frames with one row each, by column; columns without a value are left out."""
    rows = together(frames).collect() if frames else []
    return {name: value for row in rows for name, value in row.asDict().items() if value is not None}

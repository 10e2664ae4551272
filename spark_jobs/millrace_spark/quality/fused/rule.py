"""A table rule as figures of one pass, with samples of the rows that fail it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql.types import StructType

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.fused.adjustments import Adjustment, Facts
from millrace_spark.quality.fused.groups import Group
from millrace_spark.quality.fused.one_pass import Figures
from millrace_spark.quality.fused.other_tables import Reference
from millrace_spark.quality.rules.figure_bounds import Evaluate
from millrace_spark.quality.verdicts.rule_result import RuleResult

ROWS = "rows"
"""The figure that every rule on a share of the rows needs."""


@dataclass(frozen=True)
class Samples:
    """The samples that a failed rule shows of the rows that fail it.

    Attributes:
        value: the value to show of a failing row, or of a combination of values that several rows have.
        failing: true for a row that fails.
        group: columns whose combinations may occur only once; given instead of `failing`.
        reference: columns whose values must exist in another table; given instead of `failing`.
    """

    value: Column
    failing: Column | None = None
    group: Group = ()
    reference: Reference | None = None


@dataclass(frozen=True)
class FusedRule:
    """A table rule that figures evaluate.

    Attributes:
        figures: the figures that the rule needs.
        evaluate: returns the rule's result for the figures.
        samples: the samples that it shows if it fails; None if it shows none.
    """

    figures: Figures
    evaluate: Callable[[Facts], RuleResult]
    samples: Samples | None = None


Compile: TypeAlias = Callable[[Expectation, StructType], FusedRule]
"""Compiles a rule for a frame of a schema."""


def single_figure_rule(name: str, figure: Column, adjustment: Adjustment, evaluate: Evaluate) -> FusedRule:
    """Return a rule on a single figure, which other rules may share."""
    return FusedRule(Figures({name: figure}, adjust={name: adjustment}), lambda facts: evaluate(facts[name]))

"""A table rule as figures of one pass, and what it shows of the rows that fail it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql.types import StructType

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import Facts, Figures, Group
from spark_jobs.quality.rules.figure_bounds import Judge
from spark_jobs.quality.verdicts.judgement import Judgement

ROWS = "rows"
"""The figure that every rule with a share needs."""


@dataclass(frozen=True)
class Sampled:
    """What a failed rule shows of the rows that fail it.

    Attributes:
        value: what is shown of a failing row, or of a combination that several rows share.
        failing: true for a row that fails.
        group: instead, the columns whose combinations may occur only once.
    """

    value: Column
    failing: Column | None = None
    group: Group = ()


@dataclass(frozen=True)
class FusedRule:
    """A rule as figures.

    Attributes:
        figures: what it needs to know.
        judge: its verdict on them.
        sampled: what it shows when it failed; None where there is nothing to show.
    """

    figures: Figures
    judge: Callable[[Facts], Judgement]
    sampled: Sampled | None = None


Compile: TypeAlias = Callable[[Expectation, StructType], FusedRule]
"""Makes figures of a rule, for a frame of a schema."""


def of_one_figure(name: str, figure: Column, judge: Judge) -> FusedRule:
    """A rule that judges a single figure, which other rules may need as well."""
    return FusedRule(Figures({name: figure}), lambda facts: judge(facts[name]))

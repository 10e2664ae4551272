"""Figures that are adjusted by removed and added rows are exactly those of all rows, or are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millrace_spark.quality.fused.adjustments import (
    EXACT_BELOW,
    GREATEST,
    LEAST,
    TOTAL,
    CommitFigures,
    Facts,
    adjust_figures,
    total_within,
)

ADJUST = {
    "rows": TOTAL,
    "money": TOTAL,
    "magnitude": total_within("magnitude"),
    "sum": total_within("magnitude"),
    "least": LEAST,
    "greatest": GREATEST,
}
Row = tuple[int | None, Decimal | None, float | None]

WHOLE = st.none() | st.sampled_from([0, 1, -1, 5, 2**52, -(2**52), 2**53 + 1, -(2**63)]) | st.integers(-9, 9)
MONEY = st.none() | st.decimals(-(10**12), 10**12, places=3)
REAL = st.none() | st.sampled_from([-math.inf, -1.0, -0.0, 0.0, 0.1, 5.0, math.inf, math.nan])
ROWS = st.lists(st.tuples(WHOLE, MONEY, REAL), max_size=6)


def figures(rows: Sequence[Row]) -> Facts:
    """Compute all figures from rows, as Spark does."""
    whole = [float(row[0]) for row in rows if row[0] is not None]
    money = [row[1] for row in rows if row[1] is not None]
    real = sorted((row[2] for row in rows if row[2] is not None), key=lambda value: (math.isnan(value), value))
    return {
        "rows": len(rows),
        "money": sum(money, Decimal(0)) if money else None,
        "magnitude": sum(map(abs, whole)) if whole else None,
        "sum": sum(whole) if whole else None,
        "least": real[0] if real else None,
        "greatest": real[-1] if real else None,
    }


def equal(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[tuple[list[Row], list[Row]]]]:
    """Draw the rows before, and the rows that each commit removes (of those that are there) and adds."""
    before = draw(ROWS)
    rows, commits = list(before), []
    for added in draw(st.lists(ROWS, max_size=4)):
        removed = draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
        commits.append(([rows[place] for place in removed], added))
        rows = [row for place, row in enumerate(rows) if place not in removed] + added
    return before, commits


@given(histories())
def test_an_adjusted_figure_is_that_of_all_rows(history: tuple[list[Row], list[tuple[list[Row], list[Row]]]]) -> None:
    rows, commits = list(history[0]), history[1]
    before = figures(rows)
    changes = [CommitFigures(figures(removed), figures(added)) for removed, added in commits]
    adjusted = adjust_figures(ADJUST, before, changes)
    magnitudes, extremes_gone = [before["magnitude"] or 0], set()
    for removed, added in commits:
        earlier = figures(rows)
        for name in ("least", "greatest"):
            gone = figures(removed)[name]
            if gone is not None and equal(gone, earlier[name]):
                extremes_gone.add(name)
        for row in removed:
            rows.remove(row)
        rows += added
        magnitudes.append(figures(rows)["magnitude"] or 0)
    whole = figures(rows)
    for name, value in adjusted.items():
        # Without values a sum counts as 0: the rules look at the number of values.
        is_sum = name in ("money", "magnitude", "sum")
        assert equal(value or 0 if is_sum else value, whole[name] or 0 if is_sum else whole[name]), name
    inexact = {"sum", "magnitude"} if max(magnitudes) >= EXACT_BELOW else set()
    assert set(ADJUST) - set(adjusted) <= extremes_gone | inexact


def test_a_figure_that_was_not_known_before_does_not_follow_from_changes() -> None:
    assert adjust_figures(ADJUST, {"rows": 2}, [CommitFigures({"rows": 0}, {"rows": 1, "least": 5})]) == {"rows": 3}


def test_a_removed_value_beyond_the_extreme_shows_that_something_is_wrong() -> None:
    assert adjust_figures({"least": LEAST}, {"least": 3}, [CommitFigures({"least": 1}, {"least": 0})]) == {}
    assert adjust_figures({"least": LEAST}, {"least": None}, [CommitFigures({"least": 1}, {})]) == {}


def test_a_decimal_with_more_digits_than_spark_has_is_left_to_spark() -> None:
    most = Decimal("9" * 38)
    assert adjust_figures({"sum": TOTAL}, {"sum": most}, [CommitFigures({}, {"sum": Decimal(1)})]) == {}
    [total] = adjust_figures({"sum": TOTAL}, {"sum": most}, [CommitFigures({"sum": Decimal(1)}, {})]).values()
    assert total == Decimal("9" * 37 + "8")

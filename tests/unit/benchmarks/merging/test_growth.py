"""How a cost grows."""

from __future__ import annotations

import pytest

from benchmarks.merging.growth import exponent, geometric_mean


def test_a_cost_that_does_not_grow_has_the_exponent_zero() -> None:
    assert exponent({1_000: 7.0, 10_000: 7.0, 100_000: 7.0}) == 0


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_a_cost_that_grows_as_a_power_of_the_rows_has_that_exponent(power: float) -> None:
    assert exponent({rows: 3 * rows**power for rows in (1_000, 10_000, 100_000)}) == pytest.approx(power)


def test_a_fixed_cost_hides_the_growth_until_it_is_taken_off() -> None:
    costs = {rows: 20 + rows / 1_000 for rows in (1_000, 10_000)}
    assert exponent(costs) == pytest.approx(0.155, abs=0.001)
    assert exponent(costs, fixed=20) == pytest.approx(1)


def test_nothing_is_said_where_the_fixed_cost_is_all_there_is() -> None:
    assert exponent({1_000: 20.0, 10_000: 21.0}, fixed=20.0) is None


def test_a_shape_that_is_twice_as_fast_makes_up_for_one_that_is_twice_as_slow() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert geometric_mean([0.8]) == pytest.approx(0.8)

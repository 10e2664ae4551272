"""What is said of how the cost of a merge grows."""

from __future__ import annotations

from benchmarks.cost import Cost
from benchmarks.merging.orders import Kind
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.series.merge_growth import AS_LOADED, TINY, Case, _exponents

SIZES = (1_000_000, 10_000_000)


def result(millrace: float, naive: float) -> Result:
    sides = {"Millrace": Side((Cost(1, millrace),)), "N": Side((Cost(1, naive),))}
    return Result("a merge", "Millrace", "N", sides)


def test_growth_is_told_of_each_side_with_and_without_the_fixed_cost() -> None:
    found = {
        Case(TINY, AS_LOADED, Kind.RECENT): result(20, 40),
        Case(SIZES[0], AS_LOADED, Kind.RECENT): result(21, 50),
        Case(SIZES[1], AS_LOADED, Kind.RECENT): result(21, 500),
    }
    said = _exponents(found, SIZES)
    assert said == {
        "exponent of CPU-seconds, Millrace, recent, as loaded": (
            "0.00; without the 20.0 s of a tiny table 0.00; target 0.05"
        ),
        "exponent of CPU-seconds, N, recent, as loaded": "1.00; without the 40.0 s of a tiny table 1.66",
    }


def test_a_size_that_costs_no_more_than_a_tiny_table_has_no_exponent_without_it() -> None:
    found = {
        Case(TINY, AS_LOADED, Kind.RECENT): result(22, 40),
        Case(SIZES[0], AS_LOADED, Kind.RECENT): result(21, 50),
        Case(SIZES[1], AS_LOADED, Kind.RECENT): result(23, 500),
    }
    said = _exponents(found, SIZES)["exponent of CPU-seconds, Millrace, recent, as loaded"]
    assert "tiny table none, nothing is left" in said

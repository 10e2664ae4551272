"""What is said of how the cost of a merge grows."""

from __future__ import annotations

from benchmarks.cost import Cost
from benchmarks.merging.lakes import MILLRACE, N
from benchmarks.merging.orders import Kind
from benchmarks.rounds import Side
from benchmarks.series.merges.merge_growth import KEPT, TINY, WARM, Case, _exponents

SIZES = (1_000_000, 10_000_000)


def sides(millrace: float, naive: float) -> dict[str, Side]:
    return {name: Side((Cost(1, cpu_s),)) for name, cpu_s in ((MILLRACE, 2 * millrace), (WARM, millrace), (N, naive))}


def test_growth_is_told_of_each_side_with_and_without_the_fixed_cost() -> None:
    found = {
        Case(TINY, KEPT, Kind.RECENT): sides(20, 40),
        Case(SIZES[0], KEPT, Kind.RECENT): sides(21, 50),
        Case(SIZES[1], KEPT, Kind.RECENT): sides(21, 500),
    }
    said = _exponents(found, SIZES)
    assert said == {
        "exponent of CPU-seconds, Millrace, recent, as each side keeps them": (
            "0.00; without the 40.0 s of a tiny table 0.00"
        ),
        "exponent of CPU-seconds, Millrace, warm, recent, as each side keeps them": (
            "0.00; without the 20.0 s of a tiny table 0.00; target 0.05"
        ),
        "exponent of CPU-seconds, N, recent, as each side keeps them": "1.00; without the 40.0 s of a tiny table 1.66",
    }


def test_a_size_that_costs_no_more_than_a_tiny_table_has_no_exponent_without_it() -> None:
    found = {
        Case(TINY, KEPT, Kind.RECENT): sides(22, 40),
        Case(SIZES[0], KEPT, Kind.RECENT): sides(21, 50),
        Case(SIZES[1], KEPT, Kind.RECENT): sides(23, 500),
    }
    said = _exponents(found, SIZES)["exponent of CPU-seconds, Millrace, recent, as each side keeps them"]
    assert "tiny table none, nothing is left" in said

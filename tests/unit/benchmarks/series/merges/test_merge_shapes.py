"""What is said of all shapes together."""

from __future__ import annotations

from benchmarks.cost import Cost
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.series.merges.merge_shapes import N_ALIKE, _all_shapes


def test_the_mean_and_the_worst_shape_are_told() -> None:
    def sides(of: float, to: float) -> dict[str, Side]:
        return {"Millrace": Side((Cost(3, of),)), "N": Side((Cost(6, to),)), N_ALIKE: Side((Cost(1, 2 * to),))}

    results = [
        Result(name, "Millrace", "N", sides(of, to))
        for name, of, to in (("a delete", 1.0, 4.0), ("an upsert", 4.0, 2.0), ("an insert", 3.0, 3.0))
    ]
    whole = {"Millrace": Side((Cost(9, 8),)), "N": Side((Cost(18, 9),))}
    told = _all_shapes(10, whole, results, {}).facts
    assert told["geometric mean of the CPU ratios to N"] == "0.79, target 0.8"
    assert told["geometric mean of the wall ratios to N"] == "0.50"
    assert told["worst shape against N"] == "an upsert: 2.00, target 1.1"
    assert told[f"geometric mean of the CPU ratios to {N_ALIKE}"] == "0.40, target 0.8"
    assert told[f"worst shape against {N_ALIKE}"] == "an upsert: 1.00, target 1.1"

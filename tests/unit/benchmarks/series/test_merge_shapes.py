"""What is said of all shapes together."""

from __future__ import annotations

from benchmarks.cost import Cost
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.series.merge_shapes import _all_shapes


def test_the_mean_and_the_worst_shape_are_told() -> None:
    results = [
        Result(name, "Millrace", "N", {"Millrace": Side((Cost(3, of),)), "N": Side((Cost(6, to),))})
        for name, of, to in (("a delete", 1.0, 4.0), ("an upsert", 4.0, 2.0), ("an insert", 3.0, 3.0))
    ]
    whole = {"Millrace": Side((Cost(9, 8),)), "N": Side((Cost(18, 9),))}
    told = _all_shapes(10, whole, results, {}).facts
    assert told["geometric mean of the CPU ratios"] == "0.79, target 0.8"
    assert told["geometric mean of the wall ratios"] == "0.50"
    assert told["worst shape"] == "an upsert: 2.00, target 1.1"

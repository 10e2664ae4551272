"""Interleaved rounds, and the figures made of them."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.cost import Cost
from benchmarks.result import Result
from benchmarks.rounds import Ratio, Side, cpu_ratio, interleaved, wall_ratio


def side(*cpu_s: float) -> Side:
    return Side(tuple(Cost(wall_s=10 * cpu, cpu_s=cpu) for cpu in cpu_s))


def test_the_sides_run_in_turn_and_the_first_round_is_thrown_away() -> None:
    ran: list[str] = []

    def run_of(name: str) -> Callable[[int], Cost]:
        def run(number: int) -> Cost:
            ran.append(f"{name}{number}")
            return Cost(1, 100 if number == 0 else number)

        return run

    sides = interleaved({"A": run_of("A"), "B": run_of("B")}, 2, lambda *_: None)
    assert ran == ["A0", "B0", "A1", "B1", "A2", "B2"]
    assert [cost.cpu_s for cost in sides["A"].costs] == [1, 2]


def test_a_side_is_quoted_by_its_median_and_each_round_is_set_against_its_own() -> None:
    assert (side(1, 9, 2).cpu_s, side(1, 9, 2).wall_s) == (2, 20)
    # A machine that is twice as slow in the second round slows both sides: the ratio holds.
    assert cpu_ratio(side(1, 2), side(2, 4)) == Ratio(median=0.5, least=0.5, greatest=0.5)
    assert wall_ratio(side(1, 3), side(2, 2)) == Ratio(median=1.0, least=0.5, greatest=1.5)


def test_a_target_is_met_by_the_median_of_the_cpu_ratios() -> None:
    for target, is_met in ((0.5, True), (0.4, False), (None, True)):
        result = Result("a merge", "Millrace", "N", {"Millrace": side(1, 1), "N": side(2, 2)}, target)
        assert result.is_met is is_met
        assert ("red" in result.cells()[3]) is not is_met

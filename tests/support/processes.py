"""Several processes that do the same thing at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

LONGEST_S = 600
LineUp = Callable[[], object]

_barriers: list[Barrier] = []


def run_together(count: int, work: Callable[..., Any], *args: Any) -> list[Any]:
    """Run `work(number, line_up, *args)` in `count` new processes, and return their results.

    All begin at the same time, after their imports. A call of `line_up` waits for all other processes.
    """
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(count)
    with ProcessPoolExecutor(count, mp_context=context, initializer=_meet_at, initargs=(begin,)) as pool:
        running = [pool.submit(_begin, work, number, *args) for number in range(count)]
        return [result.result(timeout=LONGEST_S) for result in running]


def _meet_at(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _begin(work: Callable[..., Any], number: int, *args: Any) -> Any:
    line_up = _barriers[0].wait
    line_up(LONGEST_S)
    return work(number, line_up, *args)

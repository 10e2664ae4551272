"""A progress bar for work that takes longer than two seconds, where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Timer
from typing import TypeVar

from include.cli.output import console

_SHOWN_AFTER_S = 2.0

Item = TypeVar("Item")


def in_progress(items: Sequence[Item], work: str) -> Iterator[Item]:
    """Yield the items; after two seconds a bar on stderr shows how many of them are done, until the last one is.

    Print nothing meanwhile: the bar would be in its way. Without a terminal there is no bar.

    Args:
        items: the parts of the work.
        work: what is done to them, in a few words.
    """
    out = console(stderr=True)
    if not out.is_terminal:
        yield from items
        return
    # Imported here, because it takes time to import.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Stdout may be a file: what is printed there must not become a part of the terminal.
    bar = Progress(*columns, console=out, transient=True, redirect_stdout=False, redirect_stderr=False)
    task = bar.add_task(work, total=len(items))
    start = Timer(_SHOWN_AFTER_S, bar.start)
    start.daemon = True
    start.start()
    try:
        for item in items:
            yield item
            bar.advance(task)
    finally:
        start.cancel()
        start.join()
        bar.stop()

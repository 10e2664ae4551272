"""A progress bar for work that takes longer than two seconds, where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

from millrace.cli.output import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_SHOWN_AFTER_S = 2.0

Item = TypeVar("Item")


def new_bar(out: Console) -> Progress:
    """Return a bar that is not shown yet; texts that the console prints appear above it. Without a terminal: none."""
    # Imported here, because it takes time to import.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Stdout may be a file: what is printed there must not become a part of the terminal.
    return Progress(
        *columns,
        console=out,
        transient=True,
        disable=not out.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    )


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
    bar = new_bar(out)
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

"""Homes for stacks of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from embedded.home import Home


@contextmanager
def new_homes() -> Iterator[Callable[[], Home]]:
    """Makes homes, not in pytest's own folder: that is closed to the user that PostgreSQL runs as under root."""
    with ExitStack() as made:
        yield lambda: Home(Path(made.enter_context(TemporaryDirectory(prefix="millrace-"))).resolve())

"""Homes for stacks of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from embedded.home import Home


@contextmanager
def new_homes() -> Iterator[Callable[[], Home]]:
    """Make homes outside pytest's folder, which the user of PostgreSQL under root cannot read."""
    with ExitStack() as made:
        yield lambda: Home(Path(made.enter_context(TemporaryDirectory(prefix="millrace-"))).resolve())

"""Home folders for local stacks in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from embedded.home import Home


@contextmanager
def new_homes() -> Iterator[Callable[[], Home]]:
    """Yield a function that makes homes outside pytest's folder, which PostgreSQL's user under root cannot read."""
    with ExitStack() as folders:
        yield lambda: Home(Path(folders.enter_context(TemporaryDirectory(prefix="millrace-"))).resolve())

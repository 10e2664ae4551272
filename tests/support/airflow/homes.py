"""Home folders for local stacks in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from embedded.home import Home


@contextmanager
def new_home() -> Iterator[Home]:
    """Yield a home outside pytest's folder, which PostgreSQL's user under root cannot read."""
    with TemporaryDirectory(prefix="millrace-") as folder:
        yield Home(Path(folder).resolve())

"""The `lakehouse` command for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs

Lakehouse = Callable[..., Result]
"""Run the command with these arguments in the test's own process."""


def installation(folder: Path) -> dict[str, str]:
    """Return the environment of an installation in `folder`: the sound domain `shop`, nothing landed, no tables."""
    write_specs(folder / "tables", bronze_document(), silver_document(), gold_document())
    (folder / "landing").mkdir()
    return {f"LAKEHOUSE_{name.upper()}": str(folder / name) for name in ("root", "landing", "tables", "jars")}

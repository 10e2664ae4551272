"""The `lakehouse` command for tests."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

Lakehouse = Callable[..., Result]
"""Run the command with these arguments in the test's own process."""

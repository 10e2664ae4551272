"""The `lakehouse` command as tests call it."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

Lakehouse = Callable[..., Result]
"""Runs the command with these arguments, in the test's own process."""

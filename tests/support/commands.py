"""Commands of the system that some tests need."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def require_command(name: str, package: str) -> None:
    """Skip the test where a command is missing; a machine for CI, which is there to run every test, fails it.

    Args:
        name: the command.
        package: the package of Debian that has it.
    """
    if shutil.which(name) is None:
        skip_unless_ci(f"this machine has no {name}\nInstall it (Debian/Ubuntu: apt install {package}).")


def skip_unless_ci(cause: str) -> NoReturn:
    """Skip the test; a machine for CI, which is there to run every test, fails it."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(cause)

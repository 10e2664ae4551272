"""The shell command that queries a table: the demo runs it and prints it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shlex import quote

from embedded.clone import CLONE, DEMO
from millrace.contracts.lake_path import LakePath

_TIMEOUT_S = 60


class PrintedQueryError(Exception):
    """Raised when a printed command does not work; the message has its error output."""


def query_line(root: LakePath, sql: str) -> str:
    """Return a shell command, for the folder of the clone, that queries the certified versions of a lakehouse."""
    return f'cd {DEMO.name} && {place(root)}../.venv/bin/lakehouse query "{_escaped(sql)}"'


def place(root: LakePath) -> str:
    """Return the variable that a shell command needs before it for this lakehouse; empty for that of the settings.

    >>> place(DEMO / "data" / "lakehouse"), place(Path("/srv/my lake"))
    ('', "LAKEHOUSE_ROOT='/srv/my lake' ")
    """
    if root == DEMO / "data" / "lakehouse":
        return ""
    return f"LAKEHOUSE_ROOT={quote(str(root.absolute() if isinstance(root, Path) else root))} "


def run_line(line: str) -> None:
    """Run a printed command as a user would, with the same terminal.

    Raises:
        PrintedQueryError: the command fails.
    """
    command = ["/bin/sh", "-c", line]
    done = subprocess.run(command, cwd=CLONE, stderr=subprocess.PIPE, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise PrintedQueryError(f"the printed query does not work: {done.stderr.strip()}")


def _escaped(sql: str) -> str:
    """Escape SQL for double quotes of a shell, because SQL has single ones itself.

    >>> _escaped('print("$1")')
    'print(\\\\"\\\\$1\\\\")'
    """
    return re.sub(r'([\\"$`])', r"\\\1", sql)

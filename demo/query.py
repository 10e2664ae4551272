"""The shell command that queries a table: the demo runs it and prints it."""

from __future__ import annotations

import re
import subprocess

from demo.reading import delta_extension
from include.contracts.lake_path import LakePath
from include.settings import PROJECT

_TIMEOUT_S = 60


class QueryError(Exception):
    """Raised when a printed command does not work; the message has its error output."""


def query_line(table: LakePath, version: int, rest: str) -> str:
    """Return a shell command, for the project's folder, that shows rows of one version of a table.

    Args:
        table: the folder of the table.
        version: the certified version.
        rest: SQL after the FROM clause.
    """
    sql = f"FROM delta_scan('{_short(table)}', version = {version}) {rest}"
    code = f"import duckdb; duckdb.load_extension('{_short(delta_extension())}'); duckdb.sql('''{sql}''').show()"
    return f'{_short(PROJECT / ".venv/bin/python")} -c "{_escaped(code)}"'


def run_line(line: str) -> str:
    """Run a printed command as a user would; return its output.

    Raises:
        QueryError: the command fails.
    """
    command = ["/bin/sh", "-c", line]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        msg = f"the printed query does not work: {done.stderr.strip()}"
        raise QueryError(msg)
    return done.stdout


def _escaped(code: str) -> str:
    """Escape Python code for double quotes of a shell, which read better around SQL than single ones.

    >>> _escaped('print("$1")')
    'print(\\\\"\\\\$1\\\\")'
    """
    return re.sub(r'([\\"$`])', r"\\\1", code)


def _short(path: LakePath) -> str:
    return str(path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path)

"""Whether Spark can choose rows of a source by a `window` of time.

Spark computes such a window in a step of its own, below the operator that calls it. This step drops the rows whose time
is null, may compute one window alone, and adds a column named `window`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from millrace.sql.query.names import UntraceableError, function_name, short
from millrace.sql.query_functions import WINDOWS_OF_TIME


def require_separate_windows(
    values: Mapping[str, Sequence[exp.Expr]], columns: Mapping[str, tuple[str, ...] | None]
) -> None:
    """Require that a source whose rows are chosen by a window of time is chosen by nothing else beside it.

    Args:
        values: alias -> the values by which its rows are chosen.
        columns: alias -> the columns of the source; None if they are not known.

    Raises:
        UntraceableError: the rows of a source are chosen by another value too, or by two windows.
    """
    for alias, of_alias in values.items():
        each = dict.fromkeys(of_alias)
        windows = dict.fromkeys(node for value in each for node in value.walk() if _is_window(node))
        if not windows:
            continue
        if len(each) > 1 or len(windows) > 1:
            others = " and ".join(map(short, each))
            raise UntraceableError(f"Spark cannot choose rows of {alias} by {others}, with a window() among them")
        if WINDOWS_OF_TIME in (columns.get(alias) or ()):
            raise UntraceableError(
                f"{alias} has a column {WINDOWS_OF_TIME}, as Spark names {short(next(iter(windows)))}"
            )


def _is_window(node: exp.Expr) -> bool:
    return function_name(node) == WINDOWS_OF_TIME

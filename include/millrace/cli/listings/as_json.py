"""`--json`: a listing as a JSON array, with an object per line. Stdout gets nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from millrace.cli.output import show, show_problem

if TYPE_CHECKING:
    from rich.console import RenderableType

AsJson = Annotated[bool, typer.Option("--json", help="Write a JSON array instead of a table.")]


def show_listing(
    items: Iterable[object], view: Callable[[], RenderableType], *remarks: RenderableType, as_json: bool
) -> None:
    """Print a listing for people, or as JSON; then the remarks go to stderr.

    Args:
        items: an object per line: a dataclass, a model of pydantic, or a mapping.
        view: returns the same for people.
        remarks: lines that follow the listing.
        as_json: whether to print JSON.
    """
    if as_json:
        typer.echo(json_array(items))
        for remark in remarks:
            show_problem(str(remark))
    else:
        show(view(), *remarks)


def json_array(items: Iterable[object]) -> str:
    """Return items as a JSON array; times are in ISO 8601 and UTC, and numbers without a word in JSON are null.

    >>> from datetime import UTC, datetime
    >>> print(json_array([{"rows": 3, "at": datetime(2013, 1, 1, tzinfo=UTC)}, {"rows": float("nan")}]))
    [
    {"rows":3,"at":"2013-01-01T00:00:00Z"},
    {"rows":null}
    ]
    """
    # Imported here, because every command loads this module, also for its help.
    from pydantic_core import to_json

    lines = [to_json(item, inf_nan_mode="null").decode() for item in items]
    return "\n".join(["[", ",\n".join(lines), "]"]) if lines else "[]"

"""``python -m demo.source_system``: lay out the landing files of a range of days."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from demo.source_system.layout import OutsideSourceDataError, lay_out


def main(
    landing: Annotated[Path, typer.Option(help="Folder for the feeds; made if missing.")],
    start: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="First UTC day.")],
    end: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="Day after the last day.")],
) -> None:
    """Lay out real flights of 2013, with weather and planes, as a source system would deliver them."""
    try:
        delivery = lay_out(landing, start.date(), end.date())
    except OutsideSourceDataError as error:
        raise typer.BadParameter(str(error), param_hint="--start / --end") from None
    table = Table("day", "feed", *(f"[right]{name}" for name in ("files", "rows", "late", "doubled")))
    for day in delivery.days:
        table.add_row(str(day.day), day.feed, *(f"{n:,}" for n in (day.files, day.rows, day.late, day.doubled)))
    Console().print(table)


if __name__ == "__main__":
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    app.command()(main)
    app()

"""`lakehouse gate`: show the results of a table's gate, and override a refusal.

As in `include.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from typing import Annotated

import typer

from include.cli.output import missing_root, show

gate = typer.Typer(no_args_is_help=True, help="Show the results of a table's gate; let one refused version pass.")

Table = Annotated[str, typer.Argument(help="The table, as <layer>.<name>.")]


@gate.command("show")
def gate_show(
    table: Table,
    limit: Annotated[int, typer.Option(min=1, help="The number of newest results to show, the newest last.")] = 20,
) -> None:
    """List the checked versions: passed, refused and by which rules, overridden by whom and why."""
    from include.cli.gate.history import result_table, status_lines
    from include.settings import Settings

    settings = Settings()
    status = status_lines(table, settings)
    show(result_table(table, settings, limit), *status, *missing_root(settings.root))


@gate.command("override")
def gate_override(
    table: Table,
    version: Annotated[int, typer.Option(help="The refused version that readers may use.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the version.")],
) -> None:
    """Let one refused version pass: readers use it from now on. The rules check later versions again."""
    from include.cli.gate.history import override_refusal
    from include.settings import Settings

    show(*override_refusal(table, version, reason, Settings()))

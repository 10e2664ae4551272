"""`lakehouse gate`: what the gates said of a table's versions, and letting a refused one pass.

As in `include.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from typing import Annotated

import typer

gate = typer.Typer(no_args_is_help=True, help="See what the gates said of a table; let one refused version pass.")

Table = Annotated[str, typer.Argument(help="The table, as <layer>.<name>.")]


@gate.command("show")
def gate_show(
    table: Table,
    limit: Annotated[int, typer.Option(min=1, help="So many results at most, the newest last.")] = 20,
) -> None:
    """List what was judged: passed, refused and by which rules, overridden by whom and why."""
    from include.cli.gate.history import result_table, standing_lines, verdicts
    from include.cli.output import missing_root, show
    from include.settings import Settings

    settings = Settings()
    standing = standing_lines(table, settings)
    show(result_table(verdicts(table, settings, limit)), *standing, *missing_root(settings.root))


@gate.command("override")
def gate_override(
    table: Table,
    version: Annotated[int, typer.Option(help="The version that was refused, and may be read all the same.")],
    reason: Annotated[str, typer.Option(help="Why; it stays with the version.")],
) -> None:
    """Let one refused version pass, once: readers use it from now on. Later versions are judged by the rules again."""
    from include.cli.gate.history import let_pass
    from include.cli.output import show
    from include.settings import Settings

    show(*let_pass(table, version, reason, Settings()))

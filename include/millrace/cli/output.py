"""The output of the CLI: results on stdout, errors on stderr, every typed error with its exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

from millrace.cli.catalog import leave_out_of_warning, warnings_of_specs
from millrace.disk_space import disk_full_error
from millrace.errors import ExitCode, MillraceError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from millrace.contracts.lake_path import LakePath

WIDTH_WITHOUT_TERMINAL = 200
"""The width of output to a file or a pipe, so that tables are not cut."""


class ErrorsToExitCodes(TyperGroup):
    """The command group that ends a command with the exit code of the error it raised."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; show a typed error, or a full disk, on stderr without a traceback."""
        with warnings_of_specs(console(stderr=True)):
            try:
                return super().invoke(ctx)
            except MillraceError as error:
                show_error(error)
                ctx.exit(error.exit_code)
            except Exception as error:
                from pydantic import ValidationError
                from pydantic_settings import SettingsError

                from millrace.settings import Settings

                if isinstance(error, ValidationError) and error.title == Settings.__name__:
                    for item in error.errors():
                        problem = item["msg"].removeprefix("Value error, ")
                        show_problem(f"LAKEHOUSE_{str(item['loc'][0]).upper()}: {problem}")
                    ctx.exit(ExitCode.WRONG_USAGE)
                if isinstance(error, SettingsError):
                    show_problem(f"{error}\nWrite the variable as JSON; the one of `kafka` is LAKEHOUSE_KAFKA.")
                    ctx.exit(ExitCode.WRONG_USAGE)
                places = [place for name, place in Settings() if name == "root"]
                full = disk_full_error(error, f"lakehouse {ctx.invoked_subcommand}", places)
                if full is None:
                    raise
                show_error(full)
                ctx.exit(full.exit_code)


def console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr, whose texts cannot command the terminal."""
    from millrace.cli.listings.plain_console import PlainConsole

    stream = sys.stderr if stderr else sys.stdout
    return PlainConsole(stderr=stderr, highlight=False, width=None if stream.isatty() else WIDTH_WITHOUT_TERMINAL)


def show(*parts: RenderableType) -> None:
    """Print the result of a command, one line per part."""
    out = console()
    for part in parts:
        out.print(part, markup=False)


def show_problem(text: str) -> None:
    """Print a text on stderr, and wrap none of its lines."""
    console(stderr=True).print(text, markup=False, soft_wrap=True)


def missing_root(root: LakePath) -> tuple[str, ...]:
    """Return a note if the lakehouse's folder is missing, since it may be mistyped; nothing for a bucket."""
    if not isinstance(root, Path) or root.exists():
        return ()
    return (f"There is no folder {root}: nothing was built there yet, or LAKEHOUSE_ROOT names another folder.",)


def show_error(error: MillraceError) -> None:
    """Print an error; problems of specs as a table on a terminal, else one line each."""
    from millrace.cli.views import problem_table
    from millrace.specs.problem import SpecsRefusedError

    out = console(stderr=True)
    if isinstance(error, SpecsRefusedError):
        leave_out_of_warning(error.problems)
    if isinstance(error, SpecsRefusedError) and out.is_terminal:
        head, *_ = str(error).split("\n")
        out.print(problem_table(error.problems))
        out.print(head, style="bold red", markup=False)
    else:
        show_problem(str(error))

"""The table specs of a command: they are read once, and their problems are reported once, at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millrace.contracts.counted import counted

if TYPE_CHECKING:  # every command loads this module, also those that print help alone
    from rich.console import Console

    from millrace.catalog import Catalog
    from millrace.specs.problem import SpecProblem

_MAX_WARNINGS = 3


@dataclass
class _Command:
    """The catalogs that the running command has read, and the files whose problems it reports itself."""

    catalogs: dict[Path, Catalog] = field(default_factory=dict)
    reported: set[Path] = field(default_factory=set)


_COMMAND: ContextVar[_Command | None] = ContextVar("command", default=None)


@contextmanager
def warnings_of_specs(err: Console) -> Iterator[None]:
    """Print to `err`, at the end of a command, the wrong specs that it read but did not report."""
    command = _Command()
    token = _COMMAND.set(command)
    try:
        yield
    finally:
        _COMMAND.reset(token)
        for catalog in command.catalogs.values():
            wrong = [spec for spec in catalog.invalid.values() if spec.problems[0].file not in command.reported]
            for spec in wrong[:_MAX_WARNINGS]:
                err.print(spec.warning, markup=False, soft_wrap=True)
            if len(wrong) > _MAX_WARNINGS:
                more = len(wrong) - _MAX_WARNINGS
                err.print(
                    f"warning: {counted(more, 'more spec is', 'more specs are')} wrong: see `lakehouse check`",
                    markup=False,
                )


def command_catalog(folder: Path) -> Catalog:
    """Return all table specs of `folder`; if some are wrong, the command ends with a warning on stderr.

    Raises:
        SpecError: there is no such folder.
    """
    from millrace.catalog import load_catalog

    command = _COMMAND.get() or _Command()
    if folder not in command.catalogs:
        command.catalogs[folder] = load_catalog(folder)
    return command.catalogs[folder]


def leave_out_of_warning(problems: Iterable[SpecProblem]) -> None:
    """Do not warn of the files of these problems, because the command itself reports them."""
    if command := _COMMAND.get():
        command.reported.update(problem.file for problem in problems)

"""The table specs as a command sees them: read once, and what is wrong with them said once, at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # every command loads this module, also those that print help alone
    from rich.console import Console

    from include.catalog import Catalog
    from include.specs.problem import SpecProblem

_FEW = 3


@dataclass
class _Command:
    """What the running command has read, and the files of which it says by itself what is wrong."""

    read: dict[Path, Catalog] = field(default_factory=dict)
    told: set[Path] = field(default_factory=set)


_COMMAND: ContextVar[_Command | None] = ContextVar("command", default=None)


@contextmanager
def warnings_of_specs(err: Console) -> Iterator[None]:
    """Around a command: at its end `err` names the wrong specs that it met, and said nothing of."""
    command = _Command()
    token = _COMMAND.set(command)
    try:
        yield
    finally:
        _COMMAND.reset(token)
        for catalog in command.read.values():
            _warn(catalog, command.told, err)


def command_catalog(folder: Path) -> Catalog:
    """All table specs of `folder`; where some are wrong, the command ends with a warning on stderr.

    Raises:
        SpecError: there is no such folder.
    """
    from include.catalog import load_catalog

    command = _COMMAND.get() or _Command()
    if folder not in command.read:
        command.read[folder] = load_catalog(folder)
    return command.read[folder]


def leave_out_of_warning(problems: Iterable[SpecProblem]) -> None:
    """Do not warn of the files of these problems: the command itself says what is wrong with them."""
    if command := _COMMAND.get():
        command.told.update(problem.file for problem in problems)


def _warn(catalog: Catalog, told: set[Path], err: Console) -> None:
    wrong = [spec for spec in catalog.invalid.values() if spec.problems[0].file not in told]
    for spec in wrong[:_FEW]:
        err.print(spec.warning, markup=False, soft_wrap=True)
    if len(wrong) > _FEW:
        err.print(f"warning: {len(wrong) - _FEW} more specs are wrong: `lakehouse check` lists them", markup=False)

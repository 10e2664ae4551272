"""What every command has: `-h`, and help for each option and argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import click
import pytest
import typer
from typer.testing import CliRunner

from millrace.cli.app import app
from millrace.contracts.file_status import FileStatus
from millrace.contracts.row_status import RowStatus
from tests.support.cli import Lakehouse


def commands(group: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command below a group with the words that call it."""
    yield names, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)


EVERY = dict(commands(typer.main.get_command(app)))


def test_every_command_and_option_has_help_and_h_shows_it(lakehouse: Lakehouse) -> None:
    assert {("tables",), ("gate", "show"), ("quarantine", "fix")} <= EVERY.keys(), "all commands are found"
    for words, command in EVERY.items():
        without = [parameter.name for parameter in command.params if not getattr(parameter, "help", "")]
        assert (without, bool(command.help)) == ([], True), words
    for group in ((), ("gate",), ("gate", "show")):
        answer = lakehouse(*group, "-h")
        assert (answer.exit_code, "Usage: " in answer.stdout) == (0, True)


@pytest.mark.parametrize(
    ("words", "values"),
    [(("quarantine", "list"), RowStatus), (("quarantine", "show"), RowStatus), (("files",), FileStatus)],
)
def test_help_at_80_columns_cuts_no_value(lakehouse: Lakehouse, words: tuple[str, ...], values: type[StrEnum]) -> None:
    shown = lakehouse(*words, "-h").stdout
    assert max(map(len, shown.splitlines())) == 80
    assert [value for value in values if value not in shown] == []


def test_the_version_and_without_arguments_the_help_are_shown(lakehouse: Lakehouse) -> None:
    assert lakehouse("--version").stdout.startswith("lakehouse 0.")
    assert "Usage: lakehouse" in lakehouse().output


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("lakehouse gate show s", ["silver.orders"]),
        ("lakehouse run --domain ", ["shop"]),
        ("lakehouse give", ["give-up"]),
        ("lakehouse quarantine fix x", []),
    ],
)
def test_the_shell_completes_commands_and_names(place: Mapping[str, str], typed: str, completed: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1), "_LAKEHOUSE_COMPLETE": "complete_bash"}
    ended = CliRunner().invoke(app, [], prog_name="lakehouse", env={**place, **words})
    assert (ended.stdout.split(), ended.stderr) == (completed, "")

"""Models that travel as a command line: generated and parsed by pydantic-settings, the same model at both ends."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel
from pydantic_settings import CliApp, SettingsConfigDict


class CommandLine(BaseModel):
    """Arguments of a program; a field `run_id` is `--run-id`, and a boolean one is a switch."""

    # Some text stands for None, by default "None" itself: here one that no command line can hold.
    model_config = SettingsConfigDict(frozen=True, extra="forbid", cli_parse_none_str="\0")

    def to_argv(self) -> list[str]:
        """The arguments as a command line; `from_argv` gives the same model back.

        A value is joined to its flag by `=`: alone, one that begins with a dash would be taken for a flag itself.
        """
        fields = type(self).model_fields
        switches = {f"--{name.replace('_', '-')}" for name, field in fields.items() if field.annotation is bool}
        parts = iter(CliApp.serialize(self))
        return [part if part in switches else f"{part}={next(parts)}" for part in parts]

    @classmethod
    def from_argv(cls, argv: list[str]) -> Self:
        """The arguments that a command line states.

        Raises:
            SystemExit: with a usage message, when an argument is missing, unknown or wrong.
        """
        return CliApp.run(cls, cli_args=argv)

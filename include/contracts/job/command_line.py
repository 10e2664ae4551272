"""Models that are passed to a program as its command line; pydantic-settings generates and parses it."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel
from pydantic_settings import CliApp, SettingsConfigDict


class CommandLine(BaseModel):
    """The arguments of a program: a field `run_id` becomes `--run-id`, and a boolean field becomes a switch."""

    # pydantic-settings reads one text as None, by default "None". This is a text that no command line can hold.
    model_config = SettingsConfigDict(frozen=True, extra="forbid", cli_parse_none_str="\0")

    def to_argv(self) -> list[str]:
        """Return the arguments as a command line, from which `from_argv` makes the same model.

        Each value is joined to its flag by `=`, because a separate value that begins with a dash would be read as a
        flag.
        """
        fields = type(self).model_fields
        switches = {f"--{name.replace('_', '-')}" for name, field in fields.items() if field.annotation is bool}
        parts = iter(CliApp.serialize(self))
        return [part if part in switches else f"{part}={next(parts)}" for part in parts]

    @classmethod
    def from_argv(cls, argv: list[str]) -> Self:
        """Parse a command line.

        Raises:
            SystemExit: with a usage message, when an argument is missing, unknown or wrong.
        """
        return CliApp.run(cls, cli_args=argv)

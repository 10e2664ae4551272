"""What a person asks of a job, as a file beside its report: rows, SQL and reasons are no text for a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict


class RequestFile(BaseModel):
    """A request that travels to a driver as a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def save(self, path: Path) -> Path:
        """Write it to `path`, which is returned."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """The request at `path`."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

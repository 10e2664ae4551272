"""A person's request to a job, as a file next to its report: rows, SQL and reasons do not fit on a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from include.contracts.strict_model import StrictModel


class RequestFile(StrictModel):
    """A request that a driver reads from a file."""

    def save(self, path: Path) -> Path:
        """Write the request to `path`, and return `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.model_dump_json(), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the request at `path`."""
        return cls.model_validate_json(path.read_text(encoding="utf-8"))

"""Where each thing lies under the lakehouse root. Tables are found by path; there is no metastore."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LakehousePaths:
    """The folders under one lakehouse root.

    >>> LakehousePaths(Path("/lake")).table("silver.flights").as_posix()
    '/lake/silver/flights'
    >>> LakehousePaths(Path("/lake")).quarantine("silver.flights").as_posix()
    '/lake/silver_quarantine/flights'
    """

    root: Path

    def table(self, table: str) -> Path:
        """The Delta table `<layer>.<name>`."""
        layer, name = table.split(".")
        return self.root / layer / name

    def quarantine(self, table: str) -> Path:
        """The Delta table of the rows that `table` refused."""
        layer, name = table.split(".")
        return self.root / f"{layer}_quarantine" / name

    def tombstones(self, table: str) -> Path:
        """The Delta table of the deleted keys of a silver table."""
        _, name = table.split(".")
        return self.root / "silver_tombstones" / name

    def ops(self, name: str) -> Path:
        """One ledger table: `batches`, `files`, `gates`, `columns`, `commits` or `quarantine`."""
        return self.root / "ops" / name

    @property
    def leases(self) -> Path:
        """The folder of lease objects."""
        return self.root / "_millrace" / "leases"

    @property
    def reports(self) -> Path:
        """The folder of job reports."""
        return self.root / "_millrace" / "reports"

    @property
    def data_docs(self) -> Path:
        """The folder of the pages on what the gates of each run said."""
        return self.root / "_millrace" / "data_docs"

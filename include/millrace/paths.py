"""The places under the lakehouse root. Tables are found by path; there is no metastore."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from millrace.contracts.lake_path import LakePath

OWN = "_millrace"
"""The folder under the root for everything that is not a table."""

SCHEMA_FILE = "table_spec.schema.json"
"""The JSON Schema of specs, beside the folder of a project's specs, whose first line names it for editors."""


@dataclass(frozen=True)
class LakehousePaths:
    """The folders of one lakehouse. Production code takes them from `Settings.paths` or `JobContext.paths`.

    Attributes:
        root: the folder of the lakehouse.
        views: the folder of the views of certified versions, if there is to be one (`Settings.views`).

    >>> LakehousePaths(Path("/lake")).table("silver.flights").as_posix()
    '/lake/silver/flights'
    >>> LakehousePaths(Path("/lake")).quarantine("silver.flights").as_posix()
    '/lake/silver_quarantine/flights'
    """

    root: LakePath
    views: LakePath | None = field(default=None, kw_only=True)

    def root_of(self, table: str) -> LakePath:
        """Return the folder that holds a table, its quarantine and its tombstones; a rebuild has another one."""
        return self.root

    @property
    def ledger_root(self) -> LakePath:
        """The folder that holds the ledger; a rebuild has its own."""
        return self.root

    def table(self, table: str) -> LakePath:
        """Return the path of the Delta table `<layer>.<name>`."""
        layer, name = table.split(".")
        return self.root_of(table) / layer / name

    def quarantine(self, table: str) -> LakePath:
        """Return the path of the Delta table of the rows that `table` refused."""
        layer, name = table.split(".")
        return self.root_of(table) / f"{layer}_quarantine" / name

    def tombstones(self, table: str, table_id: str) -> LakePath:
        """Return the path of a silver table's tombstones, by its id, since a rebuilt table may have other keys.

        >>> LakehousePaths(Path("/lake")).tombstones("silver.flights", "5b0e").as_posix()
        '/lake/silver_tombstones/flights/5b0e'
        """
        _, name = table.split(".")
        return self.root_of(table) / "silver_tombstones" / name / table_id

    def ops(self, name: str) -> LakePath:
        """Return the path of a table of the ledger, such as `batches`."""
        return self.ledger_root / "ops" / name

    @property
    def leases(self) -> LakePath:
        """The folder of lease objects."""
        return self.ledger_root / OWN / "leases"

    @property
    def state(self) -> LakePath:
        """The folder of the tables' current states."""
        return self.ledger_root / OWN / "state"

    def landing_copies(self, table: str) -> LakePath:
        """Return the folder of the plain copies of landing files, from which a batch of a bronze table reads them."""
        return self.root / OWN / "landing_copies" / table

    @property
    def suppressions(self) -> LakePath:
        """The folder of the salt by which `ops.suppressions` hides keys."""
        return self.root / OWN / "suppressions"

    @property
    def alerts(self) -> LakePath:
        """The folder of what alerts have told."""
        return self.root / OWN / "alerts"

    @property
    def rebuilds(self) -> LakePath:
        """The folder of rebuilds, which has a folder for each rebuild."""
        return self.root / OWN / "rebuilds"

    @property
    def dropped(self) -> LakePath:
        """The folder of dropped tables, which has a folder for each, named by the id of the table."""
        return self.root / OWN / "dropped"


@dataclass(frozen=True)
class RunPaths:
    """The folders of the files that runs write for people; always on a disk.

    >>> RunPaths(Path("/lake/_millrace")).reports.as_posix()
    '/lake/_millrace/reports'
    """

    folder: Path

    @property
    def reports(self) -> Path:
        """The folder of job reports."""
        return self.folder / "reports"

    @property
    def driver_logs(self) -> Path:
        """The folder of driver logs."""
        return self.folder / "driver_logs"

    @property
    def data_docs(self) -> Path:
        """The folder of the pages on each run's gate results."""
        return self.folder / "data_docs"

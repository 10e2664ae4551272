"""What the builder of a run's Data Docs is told, and what a gate's task leaves so that it can be."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from include.contracts.job.command_line import CommandLine
from include.contracts.lake_root import LakeRoot


class JudgedVersion(BaseModel):
    """A table version that a gate's task decided about.

    Attributes:
        table: the table.
        version: its version.
        suite_hash: digest of the rules by which it was judged.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    version: int
    suite_hash: str


class DataDocsArgs(CommandLine):
    """What the builder is told.

    Attributes:
        root: the lakehouse root.
        folder: the run's folder, which is made: what is recorded now becomes a folder of pages in it.
        run_id: the Airflow run, as the pages name it.
        judged: what its gates decided about.
    """

    root: LakeRoot
    folder: Path
    run_id: str
    judged: tuple[JudgedVersion, ...]

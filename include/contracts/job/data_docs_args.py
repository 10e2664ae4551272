"""The arguments of the builder of a run's Data Docs, and the record of a gate's task that they are made of."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from include.contracts.job.args import CommandLine
from include.contracts.roots import LakeRoot


class CheckedVersion(BaseModel):
    """A table version that a gate's task checked; `suite_hash` is the digest of the rules."""

    model_config = ConfigDict(frozen=True)

    table: str
    version: int
    suite_hash: str


class DataDocsArgs(CommandLine):
    """The arguments of the builder.

    Attributes:
        root: the lakehouse root.
        folder: the run's folder, which the builder creates; the pages go to a folder in it.
        run_id: the Airflow run, for the pages.
        versions: the table versions that the run's gates checked.
    """

    root: LakeRoot
    folder: Path
    run_id: str
    versions: tuple[CheckedVersion, ...]

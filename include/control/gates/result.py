"""What a gate says of one version, and a person who lets it pass."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from include.contracts.interval import Instant
from include.contracts.job.report import CheckResult
from include.contracts.time_format import MINUTE


class Override(BaseModel):
    """Who let a refused version pass, and why.

    Attributes:
        by: the person.
        reason: why, in their words.
        run_id: the Airflow run in which they did, or `cli__<time>__<random>`: the same one asks for the same override.
        at: when.
    """

    model_config = ConfigDict(frozen=True)

    by: str
    reason: str
    run_id: str
    at: Instant

    def __str__(self) -> str:
        return f"overridden by {self.by} at {self.at:{MINUTE}} UTC: {self.reason}"


class GateResult(BaseModel):
    """What the gate said of one exact table version; a passed one is that version's certificate.

    Attributes:
        table: the table.
        table_id: Delta's id of the table; another id at the same path is another table.
        version: the version that was judged.
        suite_hash: digest of the rules it was judged by.
        passed: whether readers may use the version.
        checks: what each rule said.
        batches: the batches that the verdict covers, as `<stream>/<batch_seq>`.
        refused: when not passed, what the gate found, and on a line of its own what to do.
        override: who let it pass although the rules refused it; the checks are still what the rules said.
        facts: what later versions are held against: rows `in_table`, and rows that its run has `applied`.
        compared: another table that its rules look at -> the certified version that they saw.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    table_id: str
    version: int
    suite_hash: str
    passed: bool
    checks: tuple[CheckResult, ...] = ()
    batches: tuple[str, ...] = ()
    refused: str = ""
    override: Override | None = None
    facts: dict[str, int] = {}
    compared: dict[str, int | None] = {}

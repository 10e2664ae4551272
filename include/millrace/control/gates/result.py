"""The result of a gate for one version, and the override of a refusal."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from millrace.contracts.interval import Instant
from millrace.contracts.job.report import CheckResult
from millrace.contracts.time_format import MINUTE


class Override(BaseModel):
    """The decision of a person to let a refused version pass.

    Attributes:
        by: the person.
        reason: the reason, in the words of the person.
        run_id: the Airflow run of the decision, or `cli__<time>__<random>`. A retry in the same run is the same
            override.
        at: when it was made.
    """

    model_config = ConfigDict(frozen=True)

    by: str
    reason: str
    run_id: str
    at: Instant

    @property
    def who(self) -> str:
        """Who made it, when and why."""
        return f"by {self.by} at {self.at:{MINUTE}} UTC: {self.reason}"

    def __str__(self) -> str:
        return f"certified by hand {self.who}"


class GateResult(BaseModel):
    """The result of the gate for one exact table version; a passed result is the certificate of the version.

    Attributes:
        table: the table.
        table_id: Delta's id of the table; a table with another id at the same path is another table.
        version: the checked version.
        suite_hash: digest of the rules.
        passed: whether readers may use the version.
        checks: the result of each rule.
        batches: the batches that the result covers, as `<stream>/<batch_seq>`.
        refused: if the version did not pass, the cause, and on further lines the way out.
        override: the decision to let the version pass although the rules refused it; `checks` still has their results.
        facts: the numbers with which later versions are compared: rows `in_table`, and rows that the run has `applied`.
        compared: each other table that the rules read -> its certified version at the time of the check.
        is_verification: whether it is the result of `lakehouse verify`, which compares the rows with the sources.
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
    is_verification: bool = False

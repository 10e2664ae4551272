"""Gate results and certified versions, kept in `ops.gates`.

A gate on version v judges every batch in (last certified, v]; the certified version never moves back. A commit that
changes no data (OPTIMIZE) inherits the certificate of the version below it, one that puts a version's rows back
(`include.control.restore`) that version's. A person may let one refused version pass (`include.control.overrides`):
that is one more result of it, and counts above the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake.exceptions import TableNotFoundError
from pydantic import BaseModel, ConfigDict

from include.contracts.interval import Instant
from include.contracts.job_report import CheckResult
from include.control.delta_log import commits_still_known
from include.control.ops_table import OpsTable
from include.control.resolution import table_id
from include.paths import LakehousePaths

GATES = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("version", pa.int64()),
        ("suite_hash", pa.string()),
        ("passed", pa.bool_()),
        ("result", pa.string()),
        ("overridden_by", pa.string()),
        ("override_reason", pa.string()),
    ]
)


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
        return f"overridden by {self.by} at {self.at:%Y-%m-%d %H:%M} UTC: {self.reason}"


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
        refused: when not passed, one line for the person on call.
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


@dataclass(frozen=True)
class RecordedResult:
    """A gate result and when it was written down."""

    at: datetime
    result: GateResult


class Gates:
    """Reads and writes the gate results of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._paths = paths
        self._events = OpsTable(paths.ops("gates"), GATES)

    def record(self, result: GateResult) -> None:
        """Write a verdict down."""
        self._events.append([_event(result)])

    def record_override(self, result: GateResult) -> bool:
        """Write an override down; says whether it is the first of this version by these rules, else nothing is written.

        Raises:
            ValueError: the result is no override.
        """
        if result.override is None or not result.passed:
            raise ValueError("an override is a result that passed, and says who let it")
        key = f"override/{result.table}/{result.table_id}/{result.version}/{result.suite_hash}"
        return self._events.append_once([_event(result)], key)

    def result(self, table: str, version: int, suite_hash: str) -> GateResult | None:
        """The newest verdict on exactly this version by exactly these rules; an override counts above all others.

        None also for a refusal that may be out of date, since a table that the rules look at has moved on.
        """
        found = [
            row for row in self._of_this_table(table) if (row["version"], row["suite_hash"]) == (version, suite_hash)
        ]
        counting = [row for row in found if row["overridden_by"]] or found
        newest = GateResult.model_validate_json(counting[-1]["result"]) if counting else None
        return None if newest is None or self._is_out_of_date(newest) else newest

    def results(self, table: str) -> list[RecordedResult]:
        """Every verdict on the table and every override, oldest first."""
        rows = self._of_this_table(table)
        return [RecordedResult(row["recorded_at"], GateResult.model_validate_json(row["result"])) for row in rows]

    def override_in_force(self, table: str) -> GateResult | None:
        """The override by which readers may use the version that they use, if there is one."""
        newest = self.last_passed(table)
        passed = [row for row in self._of_this_table(table) if row["passed"] and row["version"] == newest]
        # A version that the rules let pass as well needs nobody's word.
        is_a_persons_word = bool(passed) and all(row["overridden_by"] for row in passed)
        return GateResult.model_validate_json(passed[-1]["result"]) if is_a_persons_word else None

    def certified_before(self, table: str, version: int) -> list[GateResult]:
        """The certificates of versions below `version`, the newest first, one for each."""
        passed = {row["version"]: row["result"] for row in self._of_this_table(table) if row["passed"]}
        below = sorted((one for one in passed if one < version), reverse=True)
        return [GateResult.model_validate_json(passed[one]) for one in below]

    def last_passed(self, table: str) -> int | None:
        """The newest version that a gate passed."""
        return max((row["version"] for row in self._of_this_table(table) if row["passed"]), default=None)

    def first_refused(self, table: str, above: int) -> GateResult | None:
        """The refusal of the lowest version above `above`, if there is one."""
        refused = [row for row in self._of_this_table(table) if not row["passed"] and row["version"] > above]
        lowest = min(refused, key=lambda row: row["version"], default=None)
        return GateResult.model_validate_json(lowest["result"]) if lowest else None

    def certified(self, table: str) -> int | None:
        """The version that readers may use: the last passed one, or a later one with the very same rows."""
        passed = self.last_passed(table)
        return None if passed is None else self.with_the_same_rows(table, passed)

    def with_the_same_rows(self, table: str, version: int) -> int:
        """The newest version that has the very rows of `version`, as far as the log still says so.

        Nothing but OPTIMIZE and the like came since, or what else came was taken back (ADR 0018). What the log has
        forgotten may have changed rows: nothing above it inherits, and `version` itself stays what it is.
        """
        same, is_same, at = {version}, True, version
        for commit in commits_still_known(self._paths.table(table), version):
            restored = commit.metadata.get("sources", {}).get("restores")
            follows = commit.version == at + 1
            is_same = restored in same if commit.changes_data else is_same and follows
            same |= {commit.version} if is_same else set()
            at = commit.version
        return max(same)

    def _is_out_of_date(self, result: GateResult) -> bool:
        return not result.passed and any(self.certified(table) != seen for table, seen in result.compared.items())

    def _of_this_table(self, table: str) -> list[dict[str, Any]]:
        try:
            this_table = table_id(self._paths.table(table))
        except TableNotFoundError:
            return []
        return self._events.events(table, table_id=this_table)


def _event(result: GateResult) -> dict[str, Any]:
    named = result.model_dump(include={"table", "table_id", "version", "suite_hash", "passed"})
    said = result.override
    return {
        **named,
        "recorded_at": datetime.now(UTC),
        "result": result.model_dump_json(),
        "overridden_by": said.by if said else None,
        "override_reason": said.reason if said else None,
    }

"""Gate results and certified versions, kept in `ops.gates`.

A gate on version v judges every batch in (last certified, v]; the certified version never moves back. A commit that
changes no data (OPTIMIZE) inherits the certificate of the version below it, one that puts a version's rows back
(`include.control.gates.restore`) that version's. A person may let one refused version pass
(`include.control.gates.overrides`): that is one more result of it, and counts above the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from deltalake.exceptions import TableNotFoundError

from include.control.events.conditions import Span
from include.control.gates.result import GateResult
from include.control.gates.verdicts import Verdicts, fold, rows_alike, walk
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.resolution import table_id
from include.control.ledger.table_state import TableStates
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


@dataclass(frozen=True)
class RecordedResult:
    """A gate result and when it was written down."""

    at: datetime
    result: GateResult


class Gates:
    """Reads and writes the gate results of one lakehouse.

    What readers and planners ask for is answered by the table's state (`Verdicts`); the events are read from where that
    ends, and all of them only where there is none.
    """

    def __init__(self, paths: LakehousePaths) -> None:
        self._paths = paths
        self._events = OpsTable(paths.ops("gates"), GATES)
        self._states = TableStates(paths)

    def record(self, result: GateResult) -> Verdicts | None:
        """Write a verdict down; gives what all of them come to then."""
        self._make_room(result)
        self._events.append([gate_event(result)])
        return self._keep(result)

    def record_override(self, result: GateResult) -> bool:
        """Write an override down; says whether it is the first of this version by these rules, else nothing is written.

        Raises:
            ValueError: the result is no override.
        """
        if result.override is None or not result.passed:
            raise ValueError("an override is a result that passed, and says who let it")
        key = f"override/{result.table}/{result.table_id}/{result.version}/{result.suite_hash}"
        self._make_room(result)
        is_first = self._events.append_once([gate_event(result)], key)
        self._keep(result)
        return is_first

    def result(self, table: str, version: int, suite_hash: str) -> GateResult | None:
        """The newest verdict on exactly this version by exactly these rules; an override counts above all others.

        None also for a refusal that may be out of date, since a table that the rules look at has moved on.
        """
        return self.result_of(self.standing(table), table, version, suite_hash)

    def result_of(self, standing: Verdicts | None, table: str, version: int, suite_hash: str) -> GateResult | None:
        """The same, of what all verdicts on the table come to."""
        if standing is None or version > standing.upto:
            return None
        judged = standing.judged if version == standing.upto else self._on(table, version)
        found = [one for one in judged if (one.version, one.suite_hash) == (version, suite_hash)]
        counting = [one for one in found if one.override] or found
        newest = counting[-1] if counting else None
        return None if newest is None or self._is_out_of_date(newest) else newest

    def results(self, table: str, newest: int = 0) -> list[RecordedResult]:
        """Every verdict on the table and every override, oldest first; the newest so many, if a number is given."""
        return list(islice(self.newest_results(table), newest or None))[::-1]

    def newest_results(self, table: str) -> Iterator[RecordedResult]:
        """Every verdict on the table and every override, the newest first: no more is read than taken."""
        this_table = self._id_of(table)
        rows = self._events.downward(table, "recorded_at", ("result",), table_id=[this_table]) if this_table else ()
        for row in rows:
            yield RecordedResult(row["recorded_at"], GateResult.model_validate_json(row["result"]))

    def override_in_force(self, table: str) -> GateResult | None:
        """The override by which readers may use the version that they use, if there is one."""
        standing = self.standing(table)
        return standing.override_in_force if standing else None

    def certified_before(self, table: str, version: int) -> Iterator[GateResult]:
        """The certificates of versions below `version`, the newest first, one for each: no more is read than taken."""
        this_table = self._id_of(table)
        rows = self._passed(table, this_table, version - 1) if this_table else iter(())
        for _, of_version in groupby(rows, itemgetter("version")):
            yield GateResult.model_validate_json(next(of_version)["result"])

    def last_passed(self, table: str) -> int | None:
        """The newest version that a gate passed."""
        standing = self.standing(table)
        return standing.passed[-1].version if standing and standing.passed else None

    def first_refused(self, table: str, above: int) -> GateResult | None:
        """The refusal of the lowest version above `above`, if there is one."""
        standing = self.standing(table)
        if standing is None:
            return None
        known, passed = standing.refused, standing.passed[-1].version if standing.passed else -1
        if above >= passed and (known is None or known.version > above):
            return known
        return min(self.refused(table, above), key=lambda one: one.version, default=None)

    def refused(self, table: str, above: int) -> list[GateResult]:
        """The refusals of versions above `above`, oldest first."""
        return [one for one in self._found(table, version=Span(least=above + 1)) if not one.passed]

    def certified(self, table: str) -> int | None:
        """The version that readers may use: the last passed one, or a later one with the very same rows."""
        standing = self.standing(table)
        return standing.certified if standing else None

    def certificate_of(self, table: str, table_id: str, version: int) -> GateResult | None:
        """The newest certificate of a table of another id, if a version still has the rows that it was given for."""
        newest = next(self._passed(table, table_id), None)
        if newest is None:
            return None
        alike = rows_alike(self._paths.table(table), (newest["version"],), newest["version"])
        return GateResult.model_validate_json(newest["result"]) if version in alike.same else None

    def with_the_same_rows(self, table: str, version: int) -> int:
        """The newest version that has the very rows of `version`, as far as the log still says so."""
        return max(rows_alike(self._paths.table(table), (version,), version).same)

    def _make_room(self, result: GateResult) -> None:
        """Take out a state that says already what the version stands for: it would not miss what is to come."""

        def without_what_it_says(kept: Verdicts | None) -> Verdicts | None:
            return None if kept is None or result.version <= kept.upto else kept

        self._states.change(result.table, (Verdicts, without_what_it_says))

    def _keep(self, result: GateResult) -> Verdicts | None:
        """Let the state follow what was written down; gives what it says then."""
        now: list[Verdicts | None] = []

        def followed(kept: Verdicts | None) -> Verdicts | None:
            # Whoever has put it since room was made may not have seen this verdict.
            is_late = kept is not None and result.version <= kept.upto
            now.append(self._followed(result.table, None if is_late else kept))
            return now[-1]

        self._states.change(result.table, (Verdicts, followed))
        return now[-1]

    def standing(self, table: str) -> Verdicts | None:
        """What the verdicts on the table come to now."""
        return self._followed(table, self._states.read(table, Verdicts))

    def _followed(self, table: str, kept: Verdicts | None) -> Verdicts | None:
        """What was kept, and what log and events say since; all that they say where nothing of this table was kept."""
        path = self._paths.table(table)
        walked = walk(kept, path) if kept and kept.is_of(path) else None
        if kept is None or walked is None:
            found = [recorded.result for recorded in self.results(table)]
            return walk(fold(found), path) if found else None
        if walked.walked <= kept.upto:
            return walked
        later = self._found(table, version=Span(least=kept.upto + 1), table_id=[kept.table_id])
        return walk(fold(later, walked), path) if later else walked

    def _found(self, table: str, **wanted: Collection[Any] | Span) -> list[GateResult]:
        """The results of which the columns hold what is wanted, oldest first."""
        rows = self._events.find(table, ("result",), **wanted)
        return [GateResult.model_validate_json(row["result"]) for row in rows]

    def _on(self, table: str, version: int) -> list[GateResult]:
        this_table = table_id(self._paths.table(table))
        return self._found(table, version=[version], table_id=[this_table])

    def _is_out_of_date(self, result: GateResult) -> bool:
        return not result.passed and any(self.certified(table) != seen for table, seen in result.compared.items())

    def _passed(self, table: str, table_id: str, upto: int | None = None) -> Iterator[dict[str, Any]]:
        """What was recorded of versions that passed, from `upto` down; of one version the last result first."""
        rows = self._events.downward(table, "version", ("passed", "result"), upto, table_id=[table_id])
        return (row for row in rows if row["passed"])

    def _id_of(self, table: str) -> str:
        """The id of the table that lies there now; empty where there is none."""
        try:
            return table_id(self._paths.table(table))
        except TableNotFoundError:
            return ""


def gate_event(result: GateResult) -> dict[str, Any]:
    """A result as a row of `ops.gates`."""
    named = result.model_dump(include={"table", "table_id", "version", "suite_hash", "passed"})
    said = result.override
    return {
        **named,
        "recorded_at": datetime.now(UTC),
        "result": result.model_dump_json(),
        "overridden_by": said.by if said else None,
        "override_reason": said.reason if said else None,
    }

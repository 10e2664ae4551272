"""Gate results and certified versions, kept in `ops.gates`.

A gate on version v covers every batch after the certified version up to v. The certified version never moves back. A
commit that changes no data (OPTIMIZE) keeps the certificate of the version before it. A restore
(`millrace.control.repair.restoring`) gets the certificate of the version whose rows it puts back. An override
(`millrace.control.gates.overrides`) is one more result of the refused version, and wins over the others.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake.exceptions import TableNotFoundError

from millrace.contracts.job.args import CheckedVersion
from millrace.control.events.conditions import Span
from millrace.control.events.event_files import RECORDED_IN
from millrace.control.gates.judged_figures import JudgedFigures, newer_figures
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import Verdicts, equal_versions, follow_log, summarize, verdicts_on
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.table_state import PartChange, TableStates
from millrace.control.log.stored_tables import tables_in
from millrace.control.storage.read_cache import uncached_reads
from millrace.control.views.folder import rewrite_views
from millrace.control.views.scripts import View
from millrace.errors import MillraceError, first_line
from millrace.paths import LakehousePaths

log = logging.getLogger(__name__)

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
    """A gate result, and the time at which it was recorded."""

    at: datetime
    result: GateResult


class Gates:
    """Reads and writes the gate results of one lakehouse.

    The table's state (`Verdicts`) answers readers and planners. Only the events after the state are read, or all events
    if there is no state.
    """

    def __init__(self, paths: LakehousePaths) -> None:
        self._paths = paths
        self._events = OpsTable.of(paths, "gates", GATES)
        self._states = TableStates(paths)

    def record(self, result: GateResult, figures: JudgedFigures | None = None) -> Verdicts | None:
        """Record a result, with the figures by which the next version can be checked; return the table's verdicts."""
        self._drop_outdated_state(result)
        self._events.append([gate_event(result)])
        verdicts = self._update_state(result, figures)
        self.publish(result.table)
        return verdicts

    def record_override(self, result: GateResult) -> bool:
        """Record an override unless the version has one by these rules, and return whether it was recorded.

        Raises:
            ValueError: the result is no override.
        """
        if result.override is None or not result.passed:
            raise ValueError("an override is a result that passed, and names the person")
        key = f"override/{result.table}/{result.table_id}/{result.version}/{result.suite_hash}"
        self._drop_outdated_state(result)
        is_first = self._events.append_once([gate_event(result)], key)
        self._update_state(result)
        self.publish(result.table)
        return is_first

    def publish(self, table: str) -> None:
        """Rewrite the views of readers if the certified version of the table has moved, and there is a folder for them.

        A failure is only logged: the views then stay on the version before.
        """
        folder = self._paths.views
        if folder is None:
            return

        def current(is_new: bool) -> dict[str, View | None]:
            views, damage = self.views(tables_in(self._paths.root) if is_new else [table])
            for damaged, error in damage.items():
                log.warning("%s: its view was not rewritten: %s", damaged, first_line(error))
            return views

        try:
            with uncached_reads():  # another gate may have certified a newer version
                rewrite_views(folder, current)
        except Exception as error:  # noqa: BLE001  no batch fails because of a view
            log.warning("%s: the views in %s were not rewritten: %s", table, folder, first_line(error))

    def views(self, tables: Iterable[str]) -> tuple[dict[str, View | None], dict[str, Exception]]:
        """Return table -> the view of its certified version, None if it has none; and damaged table -> error."""
        views, damage = dict[str, View | None](), dict[str, Exception]()
        for table in tables:
            try:
                path, verdicts = self._paths.table(table), self.verdicts(table)
            except (MillraceError, OSError) as error:
                damage[table] = error
                continue
            place = str(path.absolute() if isinstance(path, Path) else path)
            views[table] = None
            if verdicts and verdicts.certified is not None:
                by_hand = verdicts.certified_by_hand
                views[table] = View(table, place, verdicts.certified, by_hand.who if by_hand else None)
        return views, damage

    def result(self, table: str, version: int, suite_hash: str) -> GateResult | None:
        """Return the newest result of exactly this version by exactly these rules; an override wins over all others.

        Without a result of this version, return the certificate of the newest version above it by these rules.

        Return None also for a refusal that may be out of date: the rules read another table, and that table has another
        certified version now.
        """
        return self.result_from(self.verdicts(table), table, version, suite_hash)

    def result_from(self, verdicts: Verdicts | None, table: str, version: int, suite_hash: str) -> GateResult | None:
        """Return the same as `result`, if the caller has already read the verdicts on the table."""
        if verdicts is None or version > verdicts.upto:
            return None
        results: Sequence[GateResult] = verdicts.judged
        if version != verdicts.upto:
            results = self._select(table, version=[version], table_id=[table_id(self._paths.table(table))])
        candidates = [result for result in results if (result.version, result.suite_hash) == (version, suite_hash)]
        if not candidates:
            # A later certificate covers the batches below it: those of a run whose gate had to wait for another one.
            later = (result for result in reversed(verdicts.passed) if result.version > version)
            return next((result for result in later if result.suite_hash == suite_hash), None)
        newest = ([result for result in candidates if result.override] or candidates)[-1]
        if not newest.passed and any(self.certified(other) != at for other, at in newest.compared.items()):
            return None
        return newest

    def results(self, table: str, newest: int = 0) -> list[RecordedResult]:
        """Return the results and overrides of the table, oldest first: the `newest` latest, or all for 0."""
        return list(islice(self.newest_results(table), newest or None))[::-1]

    def newest_results(self, table: str) -> Iterator[RecordedResult]:
        """Yield the results and overrides of the table, newest first; read only as many as the caller takes."""
        this_table = self._table_id(table)
        columns, of_table = ("recorded_at", "result"), {"table_id": [this_table]}
        for row in self._events.descending(table, RECORDED_IN, columns, **of_table) if this_table else ():
            yield RecordedResult(row["recorded_at"], GateResult.model_validate_json(row["result"]))

    def results_between(self, table: str, table_id: str, least: int, greatest: int | None) -> list[RecordedResult]:
        """Return the results and overrides of versions from `least` to `greatest`, oldest first."""
        columns, versions = ("recorded_at", "result"), Span(least, greatest)
        rows = self._events.find(table, columns, table_id=[table_id], version=versions)
        return [RecordedResult(row["recorded_at"], GateResult.model_validate_json(row["result"])) for row in rows]

    def verdicts(self, table: str) -> Verdicts | None:
        """Return the summary of all results of the table as of now; None if there are none."""
        return self._continue(table, self._states.read(table, Verdicts))

    def judged_figures(self, table: str) -> JudgedFigures | None:
        """Return the figures of the last checked version; None if they are not known."""
        return self._states.read(table, JudgedFigures)

    def certified(self, table: str) -> int | None:
        """Return the version that readers may use: the last passed one, or a later one with exactly its rows."""
        verdicts = self.verdicts(table)
        return verdicts.certified if verdicts else None

    def override_in_force(self, table: str) -> GateResult | None:
        """Return the override that lets readers use the certified version, or None."""
        verdicts = self.verdicts(table)
        return verdicts.override_in_force if verdicts else None

    def certificates_below(self, table: str, version: int) -> Iterator[GateResult]:
        """Yield the newest certificate of each version below `version`, downward; read only as many as are taken."""
        this_table = self._table_id(table)
        rows = self._passed_rows(table, this_table, version - 1) if this_table else iter(())
        for _, rows_of_version in groupby(rows, itemgetter("version")):
            yield GateResult.model_validate_json(next(rows_of_version)["result"])

    def certificate_of(self, table: str, version: int) -> GateResult | None:
        """Return the certificate under which readers may use, or once could use, exactly the rows of a version."""
        newest = next(self.certificates_below(table, version + 1), None)
        if newest is None:
            return None
        equal = equal_versions(self._paths.table(table), (newest.version,), newest.version)
        return newest if version in equal.versions else None

    def last_word_on(self, table: str, table_id: str, version: int) -> GateResult | None:
        """Return the newest certificate of a table with another id, if `version` still has the certified rows.

        If a verification has found these rows wrong, return its refusal instead.
        """
        results = [recorded.result for recorded in self.results_between(table, table_id, 0, None)]
        verdicts = summarize(results) if results else None
        if verdicts is None or not verdicts.same:
            return None
        equal = equal_versions(self._paths.table(table), verdicts.same, verdicts.walked)
        return (verdicts.found_wrong or verdicts.passed[-1]) if version in equal.versions else None

    def passed_until(self, table: str, at: datetime) -> list[RecordedResult]:
        """Return the results that passed until then, also of tables that a rebuild has replaced since."""
        rows = self._events.find(table, ("recorded_at", "result"), passed=[True], recorded_at=Span(greatest=at))
        return [RecordedResult(row["recorded_at"], GateResult.model_validate_json(row["result"])) for row in rows]

    def first_refusal(self, table: str, above: int) -> GateResult | None:
        """Return the refusal of the lowest version above `above`, or None."""
        verdicts = self.verdicts(table)
        if verdicts is None:
            return None
        first, passed = verdicts.refused, verdicts.passed[-1].version if verdicts.passed else -1
        if above >= passed and (first is None or first.version > above):
            return first
        return min(self.refusals(table, above), key=lambda result: result.version, default=None)

    def refusals(self, table: str, above: int) -> list[GateResult]:
        """Return the refusals of versions above `above`, oldest first."""
        return [result for result in self._select(table, version=Span(least=above + 1)) if not result.passed]

    def _drop_outdated_state(self, result: GateResult) -> None:
        """Drop a state that covers the version already, because its readers would not read the new event."""

        def kept(stored: Verdicts | None) -> Verdicts | None:
            return None if stored is None or result.version <= stored.upto else stored

        self._states.change(result.table, (Verdicts, kept))

    def _update_state(self, result: GateResult, figures: JudgedFigures | None = None) -> Verdicts | None:
        """Bring the state up to date after a result was recorded, and return the verdicts."""
        verdicts: Verdicts | None = None

        def update(stored: Verdicts | None) -> Verdicts | None:
            nonlocal verdicts
            # A state that another process has written since the drop may lack this result.
            may_lack_it = stored is not None and result.version <= stored.upto
            verdicts = self._continue(result.table, None if may_lack_it else stored)
            return verdicts

        kept: list[PartChange] = [(JudgedFigures, partial(newer_figures, now=figures))] if figures else []
        self._states.change(result.table, (Verdicts, update), *kept)
        return verdicts

    def _continue(self, table: str, stored: Verdicts | None) -> Verdicts | None:
        """Return the stored verdicts with everything that log and events say since; from all events without them."""
        path = self._paths.table(table)
        verdicts = follow_log(stored, path) if stored and stored.belong_to(path) else None
        if stored is None or verdicts is None:
            return verdicts_on([recorded.result for recorded in self.results(table)], path)
        if verdicts.walked <= stored.upto:
            return verdicts
        later = self._select(table, version=Span(least=stored.upto + 1), table_id=[stored.table_id])
        return follow_log(summarize(later, verdicts), path) if later else verdicts

    def _select(self, table: str, **conditions: Collection[Any] | Span) -> list[GateResult]:
        """Return the results whose columns meet the conditions, oldest first."""
        rows = self._events.find(table, ("result",), **conditions)
        return [GateResult.model_validate_json(row["result"]) for row in rows]

    def _passed_rows(self, table: str, table_id: str, upto: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the events of passed versions from `upto` downward; for one version the last result first."""
        rows = self._events.descending(table, "version", ("passed", "result"), upto, table_id=[table_id])
        return (row for row in rows if row["passed"])

    def _table_id(self, table: str) -> str:
        """Return the id of the table that is at the path now; empty if there is none."""
        try:
            return table_id(self._paths.table(table))
        except TableNotFoundError:
            return ""


def gate_event(result: GateResult) -> dict[str, Any]:
    """Return a result as a row of `ops.gates`."""
    override = result.override
    return {
        **result.model_dump(include={"table", "table_id", "version", "suite_hash", "passed"}),
        "result": result.model_dump_json(),
        "overridden_by": override.by if override else None,
        "override_reason": override.reason if override else None,
    }


def results_of(gates: Gates, versions: Iterable[CheckedVersion]) -> list[RecordedResult]:
    """Return the newest result of each version that the gates of a run have checked, if there is one."""
    results = list[RecordedResult]()
    for checked in versions:
        result = gates.result(checked.table, checked.version, checked.suite_hash)
        newest = gates.newest_results(checked.table)
        results += islice((recorded for recorded in newest if recorded.result == result), 1)
    return results


def folder_name(results: Sequence[RecordedResult]) -> str:
    """Return the name of the folder with the pages of these results: other results have another name."""
    texts = sorted(recorded.result.model_dump_json() for recorded in results)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

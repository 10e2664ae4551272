"""The summary of a table's gate results. It is part of the table's state, so that nobody reads all results (ADR 25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltalake.exceptions import TableNotFoundError

from millrace.contracts.lake_path import LakePath
from millrace.control.gates.result import GateResult, Override
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.delta_log import commit_mark, remaining_commits


class Verdicts(StatePart):
    """The summary of all gate results up to a version.

    Attributes:
        upto: the newest version that has a result.
        judged: all results of that version, oldest first.
        passed: all passed results of the newest version that passed, oldest first; empty if no version passed.
        refused: the refusal of the lowest version above the passed one.
        found_wrong: the verification that found the rows of a version wrong, until a later version passes by the rules.
        same: the versions with exactly the rows of the passed one, ascending.
        walked: the newest version of the log that was read to find `same`.
        mark: digest of the commit of `walked`; another table at the same path has another digest.
    """

    upto: int
    judged: tuple[GateResult, ...]
    passed: tuple[GateResult, ...] = ()
    refused: GateResult | None = None
    found_wrong: GateResult | None = None
    same: tuple[int, ...] = ()
    walked: int = -1
    mark: str = ""

    @property
    def certified(self) -> int | None:
        """The version that readers may use."""
        return self.same[-1] if self.same else None

    @property
    def override_in_force(self) -> GateResult | None:
        """The override that lets readers use that version; None if the rules passed the version as well."""
        return self.passed[-1] if self.passed and all(result.override for result in self.passed) else None

    @property
    def certified_by_hand(self) -> Override | None:
        """The decision of that override."""
        result = self.override_in_force
        return result.override if result else None

    def belong_to(self, table: LakePath) -> bool:
        """Return whether these are the verdicts on the table that is at the path now."""
        if mark := commit_mark(table, self.walked):
            return mark == self.mark
        try:
            # The log was cleaned up, or the table is gone. To ask Delta takes longer.
            return table_id(table) == self.table_id
        except TableNotFoundError:
            return False


@dataclass(frozen=True)
class EqualVersions:
    """The versions of a table that have the same rows.

    Attributes:
        versions: these versions, ascending.
        upto: the newest version of the log that was read.
        replaced_at: the last version in between that a rebuild, or its undo, has made of another table (ADR 26); None
            if there is none.
    """

    versions: tuple[int, ...]
    upto: int
    replaced_at: int | None = None


def summarize(results: Sequence[GateResult], before: Verdicts | None = None) -> Verdicts:
    """Return the verdicts that follow from at least one result, oldest first, and from those on lower versions."""
    upto = max(result.version for result in results)
    newest = max((result.version for result in results if result.passed), default=None)
    earlier = [before.refused] if before and before.refused else []
    found_wrong = _found_wrong(results, before.found_wrong if before else None)
    if newest is not None or before is None:
        passed = tuple(result for result in results if result.passed and result.version == newest)
        same, walked = ((), upto) if newest is None else ((newest,), newest)
        before = Verdicts(table_id=results[-1].table_id, upto=upto, judged=(), passed=passed, same=same, walked=walked)
    certificate = before.passed[-1].version if before.passed else -1
    refusals = [result for result in (*earlier, *results) if not result.passed and result.version > certificate]
    return before.model_copy(
        update={
            "table_id": results[-1].table_id,
            "upto": upto,
            "judged": tuple(result for result in results if result.version == upto),
            "refused": min(refusals, key=lambda result: result.version, default=None),
            "found_wrong": found_wrong,
        }
    )


def verdicts_on(results: Sequence[GateResult], table: LakePath) -> Verdicts | None:
    """Return the verdicts that follow from all results of the table that is at the path, oldest first; None if none do.

    If a rebuild of it was undone, only results since then count: the undo has repeated the last one before.
    """
    if not results:
        return None
    verdicts = summarize(results)
    replaced_at = equal_versions(table, verdicts.same, verdicts.walked).replaced_at
    since = [result for result in results if replaced_at is None or result.version >= replaced_at]
    return follow_log(summarize(since), table) if since else None


def _found_wrong(results: Sequence[GateResult], wrong: GateResult | None) -> GateResult | None:
    for result in results:
        if result.is_verification:
            wrong = None if result.passed else result
        elif wrong and result.passed and not result.override and result.version > wrong.version:
            wrong = None  # the gate passes no version that keeps rows of the wrong one
    return wrong


def follow_log(verdicts: Verdicts, table: LakePath) -> Verdicts | None:
    """Return the verdicts after reading the rest of the log; None if a rebuilt table has replaced their table."""
    equal = equal_versions(table, verdicts.same, verdicts.walked)
    if equal.replaced_at is not None:
        return None
    if equal.upto == verdicts.walked and verdicts.mark:
        return verdicts
    mark = commit_mark(table, equal.upto)
    return verdicts.model_copy(update={"same": equal.versions, "walked": equal.upto, "mark": mark})


def restoring_version(table: LakePath, version: int) -> int | None:
    """Return the version that undid `version` by a restore; None if there is none."""
    for commit in remaining_commits(table, version):
        restored = commit.metadata.get("sources", {}).get("restores")
        if restored is not None and restored < version:
            return commit.version
    return None


def equal_versions(table: LakePath, versions: Sequence[int], upto: int) -> EqualVersions:
    """Return the versions with the same rows as `versions`, which are complete up to version `upto`.

    Later versions have the same rows after commits such as OPTIMIZE, and after a restore of one of them (ADR 18). A
    commit that is missing from the log may have changed rows. So a version above a gap counts only after a restore.
    """
    equal, replaced_at = list(versions), None
    for commit in remaining_commits(table, upto):
        sources = commit.metadata.get("sources", {})
        restored, replaced_at = sources.get("restores"), commit.version if sources.get("rebuild") else replaced_at
        is_next = bool(equal) and equal[-1] == upto and commit.version == upto + 1
        if restored in equal if commit.changes_data else is_next:
            equal.append(commit.version)
        upto = commit.version
    return EqualVersions(tuple(equal), upto, replaced_at)

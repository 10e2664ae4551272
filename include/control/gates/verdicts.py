"""What the verdicts on a table come to: a part of its state, so that nobody has to read them all (ADR 25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltalake.exceptions import TableNotFoundError

from include.contracts.lake_path import LakePath
from include.control.gates.result import GateResult
from include.control.ledger.resolution import table_id
from include.control.ledger.table_state import StatePart
from include.control.log.commit_mark import commit_mark
from include.control.log.delta_log import commits_still_known


class Verdicts(StatePart):
    """What counts of all verdicts up to a version.

    Attributes:
        upto: the newest version that was judged.
        judged: every result on it, oldest first.
        passed: every passed result on the newest version that passed, oldest first; empty where none did.
        refused: the refusal of the lowest version above the one that passed.
        same: the versions that have the very rows of the one that passed, upward.
        walked: the version up to which the log was read for that.
        mark: digest of the commit that made it, which tells the table from another one at the same path.
    """

    upto: int
    judged: tuple[GateResult, ...]
    passed: tuple[GateResult, ...] = ()
    refused: GateResult | None = None
    same: tuple[int, ...] = ()
    walked: int = -1
    mark: str = ""

    @property
    def certified(self) -> int | None:
        """The version that readers may use."""
        return self.same[-1] if self.same else None

    @property
    def override_in_force(self) -> GateResult | None:
        """The override by which readers may use that version, if there is one."""
        # A version that the rules let pass as well needs nobody's word.
        return self.passed[-1] if self.passed and all(one.override for one in self.passed) else None

    def is_of(self, table: LakePath) -> bool:
        """Whether they are about the table that lies there now."""
        if mark := commit_mark(table, self.walked):
            return mark == self.mark
        try:
            # The log was cleaned up, or there is no such table any more; asking Delta takes longer.
            return table_id(table) == self.table_id
        except TableNotFoundError:
            return False


@dataclass(frozen=True)
class Alike:
    """The versions with the rows of one of them, up to a version of the log.

    Attributes:
        same: these versions, upward.
        walked: the newest version that was looked at.
        replaced: whether one of them put a table that was built anew in the place of this one (ADR 26).
    """

    same: tuple[int, ...]
    walked: int
    replaced: bool = False


def fold(results: Sequence[GateResult], before: Verdicts | None = None) -> Verdicts:
    """What verdicts come to.

    Args:
        results: they, oldest first; at least one.
        before: what earlier ones, on lower versions, come to.
    """
    upto = max(one.version for one in results)
    newest = max((one.version for one in results if one.passed), default=None)
    passed = tuple(one for one in results if one.passed and one.version == newest)
    is_new = newest is not None
    certificate = newest if newest is not None else (before.passed[-1].version if before and before.passed else -1)
    known = [before.refused] if before and before.refused else []
    refused = [one for one in (*known, *results) if not one.passed and one.version > certificate]
    return Verdicts(
        table_id=results[-1].table_id,
        upto=upto,
        judged=tuple(one for one in results if one.version == upto),
        passed=passed if is_new or before is None else before.passed,
        refused=min(refused, key=lambda one: one.version, default=None),
        same=(certificate,) if is_new else before.same if before else (),
        walked=certificate if is_new else before.walked if before else upto,
        mark=before.mark if before and not is_new else "",
    )


def walk(verdicts: Verdicts, table: LakePath) -> Verdicts | None:
    """The same with what the log says above the version up to which it was read; None where they are of no use now.

    That is where a table that was built anew has taken the place of theirs since.
    """
    found = rows_alike(table, verdicts.same, verdicts.walked)
    if found.replaced:
        return None
    if found.walked == verdicts.walked and verdicts.mark:
        return verdicts
    mark = commit_mark(table, found.walked)
    return verdicts.model_copy(update={"same": found.same, "walked": found.walked, "mark": mark})


def rows_alike(table: LakePath, same: Sequence[int], walked: int) -> Alike:
    """Which versions have the rows of those in `same`; `walked` is the version up to which they are known.

    Nothing but OPTIMIZE and the like came since, or what else came was taken back (ADR 0018). What the log has
    forgotten may have changed rows: nothing above it inherits, and what is known stays what it is.
    """
    found, replaced = list(same), False
    for commit in commits_still_known(table, walked):
        sources = commit.metadata.get("sources", {})
        restored, replaced = sources.get("restores"), replaced or bool(sources.get("rebuild"))
        inherits = bool(found) and found[-1] == walked and commit.version == walked + 1
        if restored in found if commit.changes_data else inherits:
            found.append(commit.version)
        walked = commit.version
    return Alike(tuple(found), walked, replaced)

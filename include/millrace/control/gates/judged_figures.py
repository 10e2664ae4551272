"""The figures of the last checked version: a part of the table's state, with which the next gate begins (ADR 38)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import Field

from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.states.table_state import StatePart
from millrace.control.log.delta_log import Commit, commit_mark, commits_after
from millrace.errors import TornLogError

_PARSE: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "Decimal": Decimal,
    "date": date.fromisoformat,
    "NoneType": lambda _: None,
}
"""The types of figures that are kept -> the function that reads the text of one."""


class ExactVersion(StatePart):
    """A version of a table, by which later versions can be found to follow from it.

    Attributes:
        version: the version.
        mark: the digest of its commit.
    """

    version: int
    mark: str

    def batches_upto(self, table: LakePath, version: int) -> list[Commit] | None:
        """Return the batches that changed rows after this version, up to `version`.

        None if other commits changed rows as well (a restore, a rebuild, another tool), or if the log does not say so.
        """
        if version < self.version or not self.mark or commit_mark(table, self.version) != self.mark:
            return None
        try:
            commits = [commit for commit in commits_after(table, self.version) if commit.version <= version]
        except TornLogError:
            return None
        changes = [commit for commit in commits if commit.changes_data]
        return changes if all(_only_loads_rows(commit) for commit in changes) else None


class JudgedFigures(ExactVersion):
    """The figures of the last checked version.

    Attributes:
        rules: the digest of the rules and the columns for which the figures were computed.
        rows: the rows of the version by its log.
        adjusted: how many versions in a row were checked by their changes since all rows were read.
        figures: digest of a figure's name -> its type and value.
        others: another table whose values the rules require -> the version that was read.
    """

    rules: str
    rows: int
    adjusted: int = 0
    figures: dict[str, str] = Field(default_factory=dict)
    others: dict[str, ExactVersion] = Field(default_factory=dict)

    def known(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the named figures that are known."""
        stored = {name: self.figures[key] for name in names if (key := _digest(name)) in self.figures}
        return {name: figure_value(text) for name, text in stored.items()}


def kept_figures(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return figures as they are kept, without values of other types.

    >>> kept = kept_figures({"rows": 7, "least price": Decimal("0.10"), "first name": "ann"})
    >>> sorted(kept.values())
    ['Decimal 0.10', 'int 7']
    """
    texts = {name: f"{type(value).__name__} {value}" for name, value in figures.items()}
    return {_digest(name): text for name, text in texts.items() if text.partition(" ")[0] in _PARSE}


def figure_value(text: str) -> Any:
    """Return the value of a kept figure, exactly as it was.

    >>> figure_value("float 0.1"), figure_value("date 2013-01-31"), figure_value("NoneType None")
    (0.1, datetime.date(2013, 1, 31), None)
    """
    kind, _, value = text.partition(" ")
    return _PARSE[kind](value)


def newer_figures(stored: JudgedFigures | None, now: JudgedFigures) -> JudgedFigures:
    """Return the stored figures if they are of the same table and of a later version, otherwise the new ones."""
    return stored if stored and stored.table_id == now.table_id and stored.version > now.version else now


def _only_loads_rows(commit: Commit) -> bool:
    sources = commit.metadata.get("sources", {})
    return bool(commit.metadata) and sources.get("restores") is None and not sources.get("rebuild")


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]

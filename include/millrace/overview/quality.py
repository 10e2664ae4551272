"""The results of a table's rules over time: which of them fail, since when, and what they observed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.gates import Gates, RecordedResult
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import Verdicts
from millrace.overview.observations import is_counted

MOST_RESULTS = 30
"""The number of gate results that are read."""


@dataclass(frozen=True)
class RulePoint:
    """The result of one rule for one version.

    Attributes:
        version: the version.
        at: when the result was recorded.
        check: the result.
    """

    version: int
    at: datetime
    check: CheckResult

    def measure(self, *, may_see_rows: bool) -> float | None:
        """Return what a chart shows: the number that was observed, else the number of rows that fail.

        None for neither, and for a value of a row that a reader may not see.
        """
        observed = self.check.observed
        is_number = isinstance(observed, int | float) and not isinstance(observed, bool)
        if is_number and (may_see_rows or is_counted(self.check)):
            return float(observed)
        return self.check.unexpected_rows


@dataclass(frozen=True)
class RuleHistory:
    """The results of one rule.

    Attributes:
        points: the results, oldest first; at least one.
    """

    points: tuple[RulePoint, ...]

    @property
    def last(self) -> CheckResult:
        """The newest result."""
        return self.points[-1].check

    @property
    def failing_since(self) -> RulePoint | None:
        """The first of the failures up to the newest result; None if that passed."""
        since = None
        for point in reversed(self.points):
            if point.check.passed:
                break
            since = point
        return since


@dataclass(frozen=True)
class Quality:
    """The newest gate results of a table, and the history of each of its rules.

    Attributes:
        results: the results, oldest first.
        certified: the version that readers may use.
    """

    results: Sequence[RecordedResult]
    certified: int | None = None

    @property
    def newest(self) -> GateResult | None:
        """The newest result."""
        return self.results[-1].result if self.results else None

    @property
    def rules(self) -> list[RuleHistory]:
        """The rules of the newest result, those that refuse the version first, then other failures."""
        histories: dict[tuple[str, int], list[RulePoint]] = {}
        for recorded in self.results:
            for name, check in _named(recorded.result):
                histories.setdefault(name, []).append(RulePoint(recorded.result.version, recorded.at, check))
        current = [name for name, _ in _named(self.newest)] if self.newest else []
        return sorted((RuleHistory(tuple(histories[name])) for name in current), key=lambda rule: _order(rule.last))

    @property
    def answer(self) -> str:
        """One sentence: how many rules failed on which version, and what readers use.

        >>> Quality(()).answer
        'No gate has checked this table yet.'
        """
        newest = self.newest
        if newest is None:
            return "No gate has checked this table yet."
        return f"{_rules_text(newest)}; {_readers_text(newest, self.certified)}."


def quality_of(table: str, gates: Gates, verdicts: Verdicts | None) -> Quality:
    """Read the newest results of a table; `verdicts` is the summary of all of them."""
    return Quality(gates.results(table, MOST_RESULTS), verdicts.certified if verdicts else None)


def _named(result: GateResult) -> Iterator[tuple[tuple[str, int], CheckResult]]:
    """Yield the checks of a result by a name that stays the same over time, also if two rules differ in bounds only."""
    seen = Counter[str]()
    for check in result.checks:
        yield (check.rule, seen[check.rule]), check
        seen[check.rule] += 1


def _order(check: CheckResult) -> tuple[bool, bool, bool]:
    return not check.refuses, check.passed, not check.not_judged


def _rules_text(result: GateResult) -> str:
    count, failed = len(result.checks), sum(not check.passed for check in result.checks)
    if not count:
        return f"The spec states no table rule; version {result.version} {'passed' if result.passed else 'was refused'}"
    rules = "the only rule" if count == 1 else f"all {count} rules"
    if not failed:
        skipped = sum(bool(check.not_judged) for check in result.checks)
        besides = f", {skipped} of them without a judgement yet" if skipped else ""
        return f"Version {result.version} passed {rules}{besides}"
    verb = "failed" if any(check.refuses or check.overridden for check in result.checks) else "failed as a warning"
    return f"{failed} of {count} rule{'s' if count > 1 else ''} {verb} on version {result.version}"


def _readers_text(result: GateResult, certified: int | None) -> str:
    if certified is None:
        return "readers have no certified version yet"
    if result.override and result.version == certified:
        return f"readers use it, because {result.override.by} has let it pass: {result.override.reason}"
    if result.version == certified:
        return "readers use it"
    same = " (it has the same rows)" if result.passed and certified > result.version else ""
    return f"readers use version {certified}{same}"

"""The decision of a gate about a version, and what its checks found, as lines of a log."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Severity

_LEVELS: dict[str, int] = {Severity.WARNING: logging.WARNING, Severity.INFO: logging.INFO}
"""Severity -> the level in the log; anything else is an error."""


@dataclass(frozen=True)
class GateDecision:
    """The gate's decision about a version, from the writer's own checks or from the gate's job.

    Attributes:
        version: the version that was checked.
        certified: the version that readers use now.
        passed: whether readers may use the checked version.
        message: if refused, one line for the person on call; if overridden, who let it pass.
        checks: the result of each rule.
        suite_hash: digest of the rules.
    """

    version: int | None
    certified: int | None
    passed: bool
    message: str
    checks: tuple[CheckResult, ...]
    suite_hash: str


def findings_in(checks: Iterable[CheckResult]) -> Iterable[tuple[int, str]]:
    """Yield one line, with its level, for each check that failed or was not checked."""
    for check in checks:
        if check.not_judged:
            yield logging.WARNING, f"not checked ({check.action}): {check.bounded_rule}: {check.not_judged}"
        elif not check.passed:
            reason = f": {check.reason}" if check.reason else ""
            line = f"failed ({check.action}): {check.bounded_rule}, {check.finding}{reason}"
            yield _LEVELS.get(check.severity, logging.ERROR), line

"""The tab Quality: which rules fail, since when, and what did they observe?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from markupsafe import Markup

from include.overview.quality import RuleHistory, quality_of
from lakehouse_airflow.pages.tab import ShownTable, Tab
from lakehouse_airflow.pages.trend import trend


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table = shown.overview
    with shown.reader.ledger() as ops:
        quality = quality_of(table.table, ops.gates, table.verdicts)
    rules = quality.rules
    return {
        "answer": quality.answer,
        "rules": [(rule, _observed(rule, is_whole=shown.may_see_rows), *_trend(rule)) for rule in rules],
        "failures": [rule.last for rule in rules if not rule.last.passed],
        "versions": len({recorded.result.version for recorded in quality.results}),
    }


def _observed(rule: RuleHistory, *, is_whole: bool) -> str:
    """Return what a rule observed last; texts and lists are values of rows, which not everybody may see."""
    check = rule.last
    if check.unexpected_rows is not None:
        return f"{check.unexpected_rows:,} rows fail" if check.unexpected_rows != 1 else "1 row fails"
    observed = check.observed
    if isinstance(observed, int | float) and not isinstance(observed, bool):
        return f"{observed:,}" if isinstance(observed, int) else f"{observed:,.6g}"
    return str(observed) if observed is not None and (is_whole or _is_time(observed)) else ""


def _is_time(observed: object) -> bool:
    try:
        return bool(datetime.fromisoformat(str(observed)))
    except ValueError:
        return False


def _trend(rule: RuleHistory) -> tuple[Markup, str]:
    """Return a chart of what a rule has observed, and the least and the greatest number in it."""
    points = [
        (point.version, measure, point.check.passed) for point in rule.points if (measure := point.measure) is not None
    ]
    values = [value for _, value, _ in points] or [0.0]
    return trend(points), f"{min(values):,.6g} to {max(values):,.6g}" if len(points) > 1 else ""


TAB = Tab("quality", "Quality", _values)

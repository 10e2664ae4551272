"""The tab Quality: which rules fail, since when, and what did they observe?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from lakehouse_airflow.pages.small_charts import trend
from lakehouse_airflow.pages.tab import ShownTable, Tab
from millrace.overview.quality import RuleHistory, quality_of


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table = shown.overview
    with shown.reader.ledger() as ops:
        quality = quality_of(table.table, ops.gates, table.verdicts)
    rules = quality.rules
    return {
        "answer": quality.answer,
        "rules": [(rule, *_trend(rule, may_see_rows=shown.may_see_rows)) for rule in rules],
        "failures": [rule.last for rule in rules if not rule.last.passed],
        "versions": len({recorded.result.version for recorded in quality.results}),
    }


def _trend(rule: RuleHistory, *, may_see_rows: bool) -> tuple[Markup, str]:
    """Return a chart of what a rule has observed, and the least and the greatest number in it."""
    measured = ((point, point.measure(may_see_rows=may_see_rows)) for point in rule.points)
    points = [(point.version, measure, point.check.passed) for point, measure in measured if measure is not None]
    values = [value for _, value, _ in points] or [0.0]
    return trend(points), f"{min(values):,.6g} to {max(values):,.6g}" if len(points) > 1 else ""


TAB = Tab("quality", "Quality", _values)

"""What the results of rules show of restricted columns: counts, and `RESTRICTED` in place of values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from millrace.contracts.restricted import NOTHING_RESTRICTED, RESTRICTED, RestrictedColumns
from millrace.contracts.spec.expectation import OWN_TABLE, Expectation
from millrace.contracts.spec.expectation_arguments import COUNTS_OF_COLUMNS, CUSTOM_EXPECTATIONS, QUERY, SQL
from millrace_spark.quality.verdicts.rule_result import RuleResult
from millrace_spark.spark_errors import without_values


@dataclass(frozen=True)
class RestrictedRules:
    """Finds the rules that read restricted columns, and masks their results.

    Attributes:
        own: the restricted columns of the table that is checked.
        of_other: another table -> its restricted columns.
    """

    own: RestrictedColumns = NOTHING_RESTRICTED
    of_other: Callable[[str], RestrictedColumns] = lambda _: NOTHING_RESTRICTED

    def of(self, table: str) -> RestrictedColumns:
        """Return the restricted columns of a table as rules name it."""
        return self.own if table == OWN_TABLE else self.of_other(table)

    def is_read_by(self, rule: Expectation) -> bool:
        """Whether a rule reads a restricted column, or may read one."""
        given = rule.arguments
        if rule.name in CUSTOM_EXPECTATIONS:
            return bool(self.own)  # nobody knows what the class reads
        if rule.name == QUERY:
            return any(map(self.of, (OWN_TABLE, *rule.other_tables)))
        return (
            any(column in self.own for column in rule.checked_columns)
            or _reads(given.get("condition"), self.own)
            or _reads(given.get("measure"), self.own)
            or ("source" in given and _reads(given.get("source_measure"), self.of_other(given["source"])))
        )

    def masked(self, rule: Expectation, result: RuleResult) -> RuleResult:
        """Return a result without values of restricted columns. Those of a query are masked where it is asked."""
        if not self.is_read_by(rule):
            return result
        details = {**result.details}
        if rule.name not in COUNTS_OF_COLUMNS and details.get("observed_value") is not None:
            details["observed_value"] = RESTRICTED
        if rule.name != QUERY:
            samples = details.get("partial_unexpected_list") or ()
            details["partial_unexpected_list"] = [self._sample(rule, value) for value in samples]
        error = without_values(result.error) if result.is_raised else result.error
        return replace(result, details=details, error=error)

    def _sample(self, rule: Expectation, value: Any) -> Any:
        columns = rule.checked_columns
        if rule.name == SQL:
            return json.dumps(self._of_columns(json.loads(value)), ensure_ascii=False, separators=(",", ":"))
        if isinstance(value, Mapping) and set(value) == set(columns):
            return self._of_columns(value)
        if isinstance(value, list | tuple) and len(value) == len(columns) > 1:
            return list(map(self.own.shown, columns, value))
        return RESTRICTED

    def _of_columns(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.own.shown(name, value) for name, value in values.items()}


NO_RESTRICTED_RULES = RestrictedRules()
"""Of tables that show all of their values."""


def _reads(sql: str | None, columns: RestrictedColumns) -> bool:
    """Whether an expression reads one of the columns: each part of a name may be that of a column."""
    if not sql or not columns:
        return False
    from millrace.sql.expression import expression_of  # loads sqlglot, which takes half a second

    expression = expression_of(sql)
    return not expression.names_its_columns or any(part in columns for name in expression.columns for part in name)

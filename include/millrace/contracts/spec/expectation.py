"""One expectation of a table spec: a Great Expectations name, its arguments, and what happens when it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from textwrap import shorten
from typing import Any, Self

from pydantic import Field, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from millrace.contracts.spec.expectation_arguments import (
    ARGUMENTS,
    CUSTOM_EXPECTATIONS,
    QUERY,
    REFERENCES,
    ROW_EXPECTATIONS,
    SQL,
)
from millrace.contracts.spec.gx_expectations import NOT_ON_SPARK
from millrace.contracts.spec.values import PlainText
from millrace.contracts.strict_model import StrictModel

_ROWS_OF_QUERY = "unexpected_rows_expectation"
"""Great Expectations' expectation of a query, whose name does not begin like all others."""

OWN_TABLE = "table"
"""The name in the braces of a query of the table that the rule checks."""

# Any other text in braces, such as the {2} of a regular expression, is a part of the query.
_IN_BRACES = re.compile(r"\{(table|(?:bronze|silver|gold)\.[a-z][a-z0-9_]*)\}")


def tables_in_braces(query: str) -> list[str]:
    """Return the tables that the query of a rule names in braces, each once.

    >>> tables_in_braces("SELECT * FROM {table} JOIN {silver.orders} WHERE a rlike 'x{2}'")
    ['table', 'silver.orders']
    """
    return list(dict.fromkeys(_IN_BRACES.findall(query)))


def with_names(query: str, name_of: Callable[[str], str]) -> str:
    """Return the query with another name in place of each table in braces."""
    return _IN_BRACES.sub(lambda place: name_of(place[1]), query)


class Action(StrEnum):
    """The consequence of a failed expectation.

    `quarantine` and `drop` take a single row out of the batch; `warn` and `fail` concern a whole table version.
    """

    QUARANTINE = "quarantine"
    DROP = "drop"
    WARN = "warn"
    FAIL = "fail"


class Severity(StrEnum):
    """The severity of a failed expectation, in the words of Great Expectations."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


_MAX_SQL = 120

ROW_ACTIONS = frozenset({Action.QUARANTINE, Action.DROP})


class Expectation(StrictModel):
    """One rule on one table, written in YAML as `{expect_...: {arguments}, action: ..., reason: ...}`.

    Attributes:
        name: the Great Expectations name, `expect_...`.
        arguments: that expectation's own arguments, such as `column` or `min_value`.
        action: what happens when it fails.
        severity: how much a failure matters; by default `fail` is critical and `warn` a warning. It decides the order
            of failures in reports and their level in the log, never whether a version is refused.
        warn: arguments of a narrower band for a rule with action `fail`: a version outside this band, but inside the
            rule's own, passes with a warning.
        reason: why the rule exists; every refusal of a row or a version shows it.

    >>> Expectation.model_validate(
    ...     {"expect_column_values_to_not_be_null": {"column": "flight_id"}, "action": "quarantine"}
    ... ).rule
    'expect_column_values_to_not_be_null(flight_id)'
    """

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    action: Action
    severity: Severity | None = None
    warn: dict[str, Any] = Field(default_factory=dict)
    reason: PlainText = ""

    @model_validator(mode="before")
    @classmethod
    def _from_yaml_form(cls, document: Any) -> Any:
        if not isinstance(document, dict) or "name" in document:
            return document
        if _ROWS_OF_QUERY in document:
            fix = {"key": _ROWS_OF_QUERY, "fix": f"write {QUERY}: {{query: SELECT ... FROM {{table}}}}"}
            msg = "this class of Great Expectations is no expectation of a spec"
            raise PydanticCustomError("not_on_spark", msg, fix)
        names = [key for key in document if str(key).startswith("expect_")]
        if len(names) != 1:
            msg = f"an expectation has exactly one key that starts with expect_, this one has {names or 'none'}"
            raise ValueError(msg)
        rest = {key: value for key, value in document.items() if key != names[0]}
        arguments = document[names[0]] or {}
        if names[0] == SQL and isinstance(arguments, str):
            arguments = {"condition": arguments}
        return {"name": names[0], "arguments": arguments, **rest}

    @model_validator(mode="after")
    def _is_known_and_fits_its_action(self) -> Self:
        if self.name in NOT_ON_SPARK:
            why, instead = NOT_ON_SPARK[self.name]
            fix = {"key": self.name, "fix": instead or "leave the rule out"}
            raise PydanticCustomError("not_on_spark", f"this expectation cannot check a table: {why}", fix)
        if self.name not in ARGUMENTS:
            context = {"word": self.name, "vocabulary": sorted(ARGUMENTS), "key": self.name}
            raise PydanticCustomError("unknown_word", "unknown expectation", context)
        if self.action is Action.DROP and self.name in REFERENCES:
            msg = (
                f"a dropped row cannot wait for the other table: the action of {self.name} is quarantine, warn or fail"
            )
            raise PydanticCustomError("settings_clash", msg, {"key": "action"})
        if self.action in ROW_ACTIONS and self.name not in {**ROW_EXPECTATIONS, **REFERENCES}:
            msg = f"{self.name} checks a whole table, so its action is warn or fail"
            raise PydanticCustomError("settings_clash", msg, {"key": "action"})
        if self.warn and self.action is not Action.FAIL:
            msg = f"a band that warns needs a rule with action: fail, and this rule's action is {self.action}"
            raise PydanticCustomError("settings_clash", msg, {"key": "warn"})
        if self.severity and self.action in ROW_ACTIONS:
            msg = f"{self.action} only removes single rows: severity is for warn and fail"
            raise PydanticCustomError("settings_clash", msg, {"key": "severity"})
        return self

    @model_serializer
    def _to_yaml_form(self) -> dict[str, Any]:
        optional = {"severity": self.severity and self.severity.value, "warn": self.warn, "reason": self.reason}
        settings = {key: value for key, value in optional.items() if value}
        return {self.name: self.arguments, "action": self.action.value, **settings}

    @property
    def is_row_rule(self) -> bool:
        """Whether it checks single rows and takes refused rows out of the batch; else it checks a table version."""
        return self.action in ROW_ACTIONS

    @property
    def is_reference(self) -> bool:
        """Whether it checks that the values of a single row exist in another table; a row that fails waits for them."""
        return self.is_row_rule and self.name in REFERENCES

    @property
    def bands(self) -> tuple[Self, ...]:
        """The rule without its narrower band, then the narrower band, if there is one, as a rule that warns.

        >>> rule = Expectation.model_validate(
        ...     {"expect_column_max_to_be_between": {"column": "a", "max_value": 9}, "action": "fail",
        ...      "warn": {"max_value": 5}}
        ... )
        >>> [(band.action.value, band.arguments["max_value"]) for band in rule.bands]
        [('fail', 9), ('warn', 5)]
        """
        outer = self.model_copy(update={"warn": {}})
        if not self.warn:
            return (outer,)
        narrower = {"arguments": {**self.arguments, **self.warn}, "action": Action.WARN, "severity": None, "warn": {}}
        return outer, self.model_copy(update=narrower)

    @property
    def definition(self) -> str:
        """The rule as JSON, and the digest of its class if that is one of the project's own."""
        custom = CUSTOM_EXPECTATIONS.get(self.name)
        return f"{self.model_dump_json()}{custom.digest if custom else ''}"

    @property
    def stated_severity(self) -> Severity:
        """The severity of a failure: the spec's, or else the default of the action."""
        return self.severity or (Severity.CRITICAL if self.action is Action.FAIL else Severity.WARNING)

    @property
    def checked_columns(self) -> list[str]:
        """The columns that it checks; empty for a rule about the whole table."""
        columns = [self.arguments[key] for key in ("column", "column_A", "column_B") if key in self.arguments]
        return [*map(str, columns), *map(str, self.arguments.get("column_list", []))]

    @property
    def referenced_columns(self) -> list[str]:
        """The columns of the other table that a reference is about, in the order of `checked_columns`."""
        column = self.arguments.get("other_column")
        return [str(column)] if column else [*map(str, self.arguments.get("other_column_list", []))]

    @property
    def rule(self) -> str:
        """The short name under which refusals are counted: the expectation and its columns, or the start of its SQL.

        That of a reference also names the other table, for which the refused rows wait.
        """
        sql = self.arguments.get("condition") or self.arguments.get("query") or ""
        other = f" in {self.arguments['other_table']}" if self.is_reference else ""
        return f"{self.name}({shorten(str(sql), _MAX_SQL) or ', '.join(self.checked_columns)}{other})"

    @property
    def other_tables(self) -> list[str]:
        """The tables whose certified versions it reads, without its own table and its sources."""
        named = [str(self.arguments["other_table"])] if "other_table" in self.arguments else []
        in_query = tables_in_braces(str(self.arguments.get("query", "")))
        return [*named, *(table for table in in_query if table != OWN_TABLE)]


def rules_of_keys(keys: Sequence[str]) -> tuple[Expectation, ...]:
    """Return the rules of a version in which each row has a key, and no two rows have the same one."""
    reason = "keys: a row must be found by them. Two rows have one key if a join finds several rows"
    unique: tuple[str, dict[str, Any]] = ("expect_column_values_to_be_unique", {"column": keys[0]})
    if len(keys) > 1:
        unique = ("expect_compound_columns_to_be_unique", {"column_list": list(keys)})
    present = (("expect_column_values_to_not_be_null", {"column": key}) for key in keys)
    return tuple(
        Expectation(name=name, arguments=arguments, action=Action.FAIL, reason=reason)
        for name, arguments in (unique, *present)
    )

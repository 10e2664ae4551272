"""The sources of a gold table, and the settings of one that a query computes instead of measures by group."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from millrace.contracts.spec.duration import LOOKBACK, UNBOUNDED
from millrace.contracts.spec.values import NAME, Lookback
from millrace.contracts.strict_model import StrictModel

_OF_GROUPS = ("group_by", "measures", "refresh_by")
NOT_OF_QUERIES = ("group_by", "measures", "refresh_from")
"""The keys of groups, which a table with a query cannot have."""


class GoldSource(StrictModel):
    """One table that a gold table reads.

    Attributes:
        table: the silver or gold table.
        where: Spark SQL over the table's own columns that filters its rows.
        join: how it joins the sources above it; left out for the first source.
        on: Spark SQL of the join, with columns as `<alias>.<column>`.
        lookup: whether all its rows are joined, of whatever value of `refresh_by`, such as a register of aircraft; what
            a changed row affects is found by the join, so that `refresh_from` has no entry for it.
    """

    table: str = Field(pattern=rf"^(silver|gold)\.{NAME}$")
    where: str | None = None
    join: Literal["inner", "left"] | None = None
    on: str | None = None
    lookup: bool = False

    @model_validator(mode="after")
    def _join_has_its_condition(self) -> Self:
        if (self.join is None) != (self.on is None):
            raise ValueError("join and on go together: a joined source needs both, the first source neither")
        return self


class SilverOfQuery(GoldSource):
    """One table that the query of a silver table reads.

    Attributes:
        table: the silver table.
    """

    table: str = Field(pattern=rf"^silver\.{NAME}$")


class GoldQuery(StrictModel):
    """The settings of a gold table that one SELECT computes, and how far its values reach back.

    Attributes:
        query: one SELECT in Spark SQL over the aliases of `sources`, in place of groups and measures.
        refresh: `full` computes the whole table of a query whenever a source has changed. Without it, and without
            `refresh_by`, the column by which it is refreshed follows from the query, if one can be traced.
        lookback: how far before a value of `refresh_by` the rows are on which it also depends: `7 days` for windows of
            time, `unbounded` for running totals. A change computes so many later values, too.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["query"]}, {"required": ["group_by", "measures"]}]}
    )

    query: str | None = None
    refresh: Literal["full"] | None = None
    lookback: Lookback | None = None

    @property
    def reach(self) -> timedelta:
        """The lookback: nothing without one, `UNBOUNDED` for all earlier values."""
        if self.lookback == "unbounded":
            return UNBOUNDED
        return LOOKBACK.parse(self.lookback) if self.lookback else timedelta()

    @property
    def query_columns(self) -> tuple[str, ...]:
        """The columns of the query's result; none without a query."""
        if self.query is None:
            return ()
        from millrace.sql.query.select_query import query_of  # loads sqlglot, which takes half a second

        return query_of(self.query).columns

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        stated = {key: value for key, value in self.model_dump(exclude_unset=True).items() if value is not None}
        if self.query is not None:
            for key in NOT_OF_QUERIES:
                if key in stated:
                    raise _clash(key, f"a table with a query has no {key}: the query itself says it")
            for alias, source in stated["sources"].items():
                if more := ", ".join(key for key in source if key != "table"):
                    raise _clash(
                        "sources", f"the source {alias!r} of a query has only a table: put {more} in the query"
                    )
            if "refresh_by" in stated and self.refresh is not None:
                raise _clash("refresh", "the table is refreshed by refresh_by, or full: leave one of them out")
            if self.lookback is not None and "refresh_by" not in stated:
                raise _clash("lookback", "lookback goes back in the values of refresh_by: add refresh_by")
            if self.lookback is not None and isinstance(stated["refresh_by"], list):
                raise _clash("lookback", "lookback goes back in the values of one column: leave one in refresh_by")
        elif self.refresh is not None:
            raise _clash("refresh", "refresh is for a table with a query: groups are refreshed by refresh_by")
        elif missing := [key for key in _OF_GROUPS if key not in stated]:
            more = f", and so are {', '.join(missing[1:])}" if missing[1:] else ""
            raise _clash(missing[0], f"the key is missing{more}; or write a query instead")
        elif isinstance(stated["refresh_by"], list):
            raise _clash("refresh_by", "groups are refreshed by one column: several are for a table with a query")
        return self


def _clash(key: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("settings_clash", message, {"key": key})

"""The settings of a gold table that one query computes, and what distinguishes it from one with measures by group."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from include.contracts.strict_model import StrictModel

_OF_GROUPS = ("group_by", "measures", "refresh_by", "refresh_from")
_NOT_OF_QUERIES = ("group_by", "measures", "refresh_from")


class GoldQuery(StrictModel):
    """The settings of a gold table that one SELECT computes.

    Attributes:
        query: one SELECT in Spark SQL over the aliases of `sources`, in place of groups and measures.
        refresh: `full` computes the whole table of a query whenever a source has changed. Without it, and without
            `refresh_by`, the column by which it is refreshed follows from the query, if one can be traced.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["query"]}, {"required": ["group_by", "measures"]}]}
    )

    query: str | None = None
    refresh: Literal["full"] | None = None

    @property
    def query_columns(self) -> tuple[str, ...]:
        """The columns of the query's result; none without a query."""
        if self.query is None:
            return ()
        from include.sql.select_query import query_of  # loads sqlglot, which takes half a second

        return query_of(self.query).columns

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        stated = {key: value for key, value in self.model_dump(exclude_unset=True).items() if value is not None}
        if self.query is not None:
            for key in _NOT_OF_QUERIES:
                if key in stated:
                    raise _clash(key, f"a table with a query has no {key}: the query itself says it")
            for alias, source in stated["sources"].items():
                if more := ", ".join(key for key in source if key != "table"):
                    raise _clash(
                        "sources", f"the source {alias!r} of a query has only a table: put {more} in the query"
                    )
            if "refresh_by" in stated and self.refresh is not None:
                raise _clash("refresh", "the table is refreshed by refresh_by, or full: leave one of them out")
        elif self.refresh is not None:
            raise _clash("refresh", "refresh is for a table with a query: groups are refreshed by refresh_by")
        elif missing := [key for key in _OF_GROUPS if key not in stated]:
            more = f", and so are {', '.join(missing[1:])}" if missing[1:] else ""
            raise _clash(missing[0], f"the key is missing{more}; or write a query instead")
        return self


def _clash(key: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("settings_clash", message, {"key": key})

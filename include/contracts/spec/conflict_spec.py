"""The limits of retrying and waiting when several writers work on a table."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from include.contracts.spec.values import Wait
from include.contracts.strict_model import StrictModel


class ConflictSpec(StrictModel):
    """The limits of retries and waits because of other writers; after them a run ends as a conflict.

    Attributes:
        max_commit_retries: the number of retries of a write that lost against another commit.
        retry_for: how long retries may begin; a retry that has begun is not interrupted: `<n> seconds`, `<n> minutes`
            or `<n> hours`.
        wait_for_lease: how long a run waits while another run or maintenance works on the table, in the same units.
    """

    max_commit_retries: int = Field(default=7, ge=0)
    retry_for: Wait = Field(default=timedelta(hours=1), json_schema_extra={"default": "60 minutes"})
    wait_for_lease: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})


DEFAULT_CONFLICTS = ConflictSpec()
"""The limits of a spec without `conflicts`."""

"""How long the writers of a table put up with each other."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import Wait


class ConflictSpec(SpecPart):
    """How long a run goes on that meets other writers of its table; then it ends as a conflict, which Airflow retries.

    Attributes:
        max_commit_retries: how often a write is tried again that lost to another commit.
        retry_for: no further try begins after so long; one that has begun takes the time that it needs.
        wait_for_lease: how long to wait while another run writes the table, or maintenance works on it.
    """

    max_commit_retries: int = Field(default=7, ge=0)
    retry_for: Wait = Field(default=timedelta(hours=1), json_schema_extra={"default": "60 minutes"})
    wait_for_lease: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})


USUAL = ConflictSpec()
"""What a spec that says nothing of conflicts means."""

"""What every part of a table spec has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecPart(BaseModel):
    """The base of every part of a spec: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

"""The base class of the parts of a table spec."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecPart(BaseModel):
    """The base of every part of a spec: it is frozen, and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

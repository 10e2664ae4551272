"""The base class of the contracts that worker, driver and people exchange."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model that is frozen, and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

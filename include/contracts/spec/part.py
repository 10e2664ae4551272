"""The base class of the parts of a table spec."""

from __future__ import annotations

from pydantic import ConfigDict

from include.contracts.strict_model import StrictModel


class SpecPart(StrictModel):
    """The base of every part of a spec: it is frozen, and refuses unknown keys."""

    model_config = ConfigDict(populate_by_name=True)

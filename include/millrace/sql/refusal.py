"""Why SQL of a spec is refused."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why SQL is refused, and the way out."""

    message: str
    fix: str = ""

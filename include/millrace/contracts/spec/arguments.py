"""Which arguments an expectation takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arguments:
    """The arguments of one expectation.

    Attributes:
        required: the arguments that must be given.
        optional: the arguments that may be given.
        one_of: when not empty, at least one of these must be given.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every argument that the expectation takes."""
        return (*self.required, *self.one_of, *self.optional)


BOUNDS = ("min_value", "max_value")
STRICT = ("strict_min", "strict_max")
COLUMN = Arguments(required=("column",), optional=("mostly",))
COLUMN_BOUNDS = Arguments(required=("column",), one_of=BOUNDS, optional=STRICT)

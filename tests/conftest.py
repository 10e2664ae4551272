"""What all tests share."""

from __future__ import annotations

import sys

import pygal  # noqa: F401
from hypothesis import settings

# A property says what is true, not how fast: a busy machine must not refute it.
settings.register_profile("millrace", deadline=None)
settings.load_profile("millrace")

# pygal adds a finder of modules without `find_spec`. Python passes over it, and pytest fails at it.
sys.meta_path[:] = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]

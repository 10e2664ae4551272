"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A property says what is true, not how fast: a busy machine must not refute it.
settings.register_profile("millrace", deadline=None)
settings.load_profile("millrace")

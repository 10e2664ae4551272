"""Read the figures that Spark observed of a frame while it wrote it."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import Observation

PATIENCE_S = 30.0
"""How long to wait for the figures, which another thread of Spark reports a moment after the write."""


def read_observation(observation: Observation) -> dict[str, Any] | None:
    """Return the figures of a finished write; None if its frame never ran, so that the caller must count again.

    Delta skips a write whose number is in the log, without an error: a batch's commit may succeed after its writer got
    an error. A plain `Observation.get` would then wait for ever in the driver's own Spark.
    """
    own = getattr(observation, "_jo", None)
    if own is not None:
        end = time.monotonic() + PATIENCE_S
        while not own.future().isCompleted():
            if time.monotonic() > end:
                return None
            time.sleep(0.02)
    return observation.get or None

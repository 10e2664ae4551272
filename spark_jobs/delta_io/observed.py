"""What was observed of a frame while it was written."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import Observation

PATIENCE_S = 30.0
"""How long Spark may take to hand over what it has observed; it does so a moment after the write, by another thread."""


def observed(observation: Observation) -> dict[str, Any] | None:
    """The figures of a write that has ended; None where its frame never ran, so that they must be counted anew.

    Delta skips a write whose number is in the log, without an error: a batch's own commit may land after its writer was
    told that it had failed. A plain `Observation.get` then waits for ever in a Spark of the driver's own.
    """
    own = getattr(observation, "_jo", None)
    if own is not None:
        end = time.monotonic() + PATIENCE_S
        while not own.future().isCompleted():
            if time.monotonic() > end:
                return None
            time.sleep(0.02)
    return observation.get or None

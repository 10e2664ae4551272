"""The id of a run that was started at the command line."""

from __future__ import annotations

from datetime import datetime

from include.contracts.time_format import ISO_SECOND
from include.control.log.batch import new_token


def new_run_id(now: datetime) -> str:
    """Return a run id with the time and a random part, so that two runs in one second do not share their reports.

    >>> new_run_id(datetime(2013, 1, 2, 3, 4, 5)).rpartition("__")[0]
    'cli__2013-01-02T03:04:05Z'
    """
    return f"cli__{now:{ISO_SECOND}}__{new_token()[:8]}"

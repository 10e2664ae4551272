"""What Spark says of a failure, cut to the line that helps."""

from __future__ import annotations

import re

_LENGTH = 500
_STAGE_FAILURE = re.compile(r".*most recent failure: Lost task [^()]*\(TID \d+\) \([^()]*\): ")


def one_line(message: str) -> str:
    """The message without stack traces and line ends, and not too long for a report."""
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    told = " ".join(line for line in lines if not line.startswith(("at ", "An error occurred"))).removeprefix(": ")
    text = _STAGE_FAILURE.sub("", told)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."

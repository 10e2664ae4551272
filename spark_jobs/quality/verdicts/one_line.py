"""Shorten Spark's error messages to the line that helps."""

from __future__ import annotations

import re

_MAX_LENGTH = 500
_STAGE_FAILURE = re.compile(r".*most recent failure: Lost task [^()]*\(TID \d+\) \([^()]*\): ")


def one_line(message: str) -> str:
    """Return the message in one line without stack traces, at most `_MAX_LENGTH` characters."""
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    joined = " ".join(line for line in lines if not line.startswith(("at ", "An error occurred"))).removeprefix(": ")
    text = _STAGE_FAILURE.sub("", joined)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."

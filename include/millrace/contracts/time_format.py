"""The formats in which Millrace writes instants, all in UTC."""

from __future__ import annotations

MINUTE = "%Y-%m-%d %H:%M"
"""For people, where seconds do not matter."""

SECOND = "%Y-%m-%d %H:%M:%S"
"""For people."""

ISO_SECOND = "%Y-%m-%dT%H:%M:%SZ"
"""ISO 8601, in ids and intervals."""

ISO_MICROSECOND = "%Y-%m-%dT%H:%M:%S.%fZ"
"""ISO 8601 without loss, in SQL and stored events."""

FILE_NAME = "%Y-%m-%dT%H%M%SZ"
"""ISO 8601 without colons, in names of files and folders."""

"""What is stored of a person: where the keys of a subject go, and in which files their values are found.

It reads everything, and writes nothing. No answer, error or log has a value that was looked for.
"""

from __future__ import annotations

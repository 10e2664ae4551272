"""Text that may quote values of rows, for people."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Return text without control characters: each but a line end and a tab is written as an escape.

    A terminal obeys control characters, a browser does not show them, and Airflow stores no NUL.

    >>> visible("a\x00b\x1b[31mc\u202ed")
    'a\\x00b\\x1b[31mc\\u202ed'
    """
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in text
    )

"""Numbers of things in texts for people."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, and with thousands separators.

    Args:
        number: the number of things.
        noun: the noun for one thing; it may have a verb, such as `file was`.
        plural: the words for any other number; by default the noun with an `s`.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "file was", "files were")
    ('1 row', '1,200 rows', '2 files were')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def in_bytes(number: int) -> str:
    """Return a number of bytes in a fitting unit.

    >>> in_bytes(3_400_000)
    '3.4 MB'
    """
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"

"""The subjects of a search: people, or anything else, that the values of `subject_keys` columns identify."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from urllib.parse import quote

from millrace.contracts.spec.table_spec import AnySpec
from millrace.errors import BadInputError

MOST_BYTES = 1024
"""The most bytes of a key."""

_MOST_SUBJECTS = 1000
_TOO_SHORT = 6
_MOST_DIGITS = 38
_IN_PATTERN = 100
"""The keys in one regular expression: RE2 refuses those that are too large."""

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)
_AS_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
"""How JSON, Java and Spark write numbers: as keys such words would name others, as `12e5` does 1200000."""

HIDDEN = "(key)"
"""What stands in place of a key."""


TEXT, NUMBER = "text", "number"
"""How a hash takes a key: by the very text of a column of texts, or by the value of a column of numbers."""


@dataclass(frozen=True)
class Subjects:
    """Subjects of one kind.

    Attributes:
        kind: the kind, as `subject_keys` names it.
        values: their keys, as text.
    """

    kind: str
    values: tuple[str, ...]

    @cached_property
    def short(self) -> tuple[str, ...]:
        """The keys that any text may hold by chance, such as 17: they are found in columns and fields alone."""
        return tuple(value for value in self.values if value.isascii() and value.isdigit() and len(value) < _TOO_SHORT)

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        """The keys that are numbers."""
        return frozenset(number for number in map(number_of, self.values) if number is not None)

    def are_named_in(self, text: str) -> bool:
        """Whether a text that a person writes has one of the keys, but for those that it may hold by chance."""
        long = replace(self, values=tuple(value for value in self.values if value not in self.short))
        return bool(long.values) and long.hide(text) != text

    def hide(self, text: str) -> str:
        """Return a text with `HIDDEN` in place of each key."""
        for forms in _chunks([form for value in self.values for form in (value, quote(value, safe=""))]):
            words = "|".join(map(re.escape, sorted(set(forms), key=len, reverse=True)))
            text = re.sub(rf"(?<![0-9A-Za-z])(?:{words})(?![0-9A-Za-z])", HIDDEN, text)
        return text


def kinds_in(specs: Mapping[str, AnySpec]) -> list[str]:
    """Return the kinds that the specs state."""
    return sorted({kind for spec in specs.values() for kind in spec.subject_keys.values()})


def read_subjects(kind: str, content: bytes) -> Subjects:
    """Return the subjects that a text names, one key in each line.

    Raises:
        BadInputError: it names none, or too many, or a key is too long, or has a blank or a control character that no
            key of a table would have by intention.
    """
    way_out = "Write one key into each line, as the tables have it, in UTF-8."
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"the subjects are no text in UTF-8: {error.reason} at byte {error.start}", way_out
        ) from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    for number, line in enumerate(lines, 1):
        if line and (line != line.strip() or not line.isprintable()):
            raise BadInputError(f"line {number} begins or ends with a blank, or has a control character", way_out)
        if len(line.encode()) > MOST_BYTES:
            raise BadInputError(f"line {number} has more than {MOST_BYTES:,} bytes", way_out)
    values = tuple(dict.fromkeys(filter(None, lines)))
    if not values:
        raise BadInputError("no subject was named", way_out)
    if len(values) > _MOST_SUBJECTS:
        cause = f"{len(values):,} subjects are more than {_MOST_SUBJECTS:,}"
        raise BadInputError(cause, "Name fewer at once: each file is compared with each of them.")
    return Subjects(kind, values)


def number_of(key: str) -> Decimal | None:
    """Return the number that a key is in columns of numbers; None if it is none, such as the word 12e5.

    >>> [number_of(key) for key in ("17", "-17.0", "C-17", "12e5", "1_7", "\uff11\uff17")]
    [Decimal('17'), Decimal('-17.0'), None, None, None, None]
    """
    return Decimal(key) if _NUMBER.fullmatch(key) else None


def number_in(text: str) -> Decimal | None:
    """Return the number that the text of a value is where values are numbers; None if it is none.

    >>> [number_in(text) for text in ("17.00", "1.7E1", ".5", "1_7", "NaN")]
    [Decimal('17.00'), Decimal('17'), Decimal('0.5'), None, None]
    """
    return Decimal(text) if _AS_NUMBER.fullmatch(text) else None


def digits_of(number: Decimal) -> str:
    """Return a number as text, the same for equal numbers; empty if no column of numbers can hold it.

    >>> [digits_of(Decimal(text)) for text in ("17", "0017", "17.0", "1.7e1", "-0.50", "0", "-0.0", "1e99")]
    ['17', '17', '17', '17', '-0.5', '0', '0', '']
    """
    if not number:
        return "0"
    if not -_MOST_DIGITS <= number.adjusted() <= _MOST_DIGITS:
        return ""
    digits = f"{number:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def message(kind: str, form: str) -> str:
    """Return the text before a key that its hash covers: another kind, or another form, has another hash.

    >>> message("customer", TEXT) + "C-17"
    'customer text C-17'
    """
    return f"{kind} {form} "


def _chunks(values: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(values), _IN_PATTERN):
        yield values[at : at + _IN_PATTERN]


def patterns_of(subjects: Subjects, keys: frozenset[str], *, anywhere: bool = False) -> list[str]:
    """Return regular expressions, for Python and RE2, of plain texts that name one of the subjects.

    Args:
        subjects: the subjects.
        keys: the fields whose values count even if they are short, as in `"customer_id":17`.
        anywhere: whether short keys count anywhere.
    """
    short = () if anywhere else subjects.short
    words = [form for value in subjects.values if value not in short for form in forms_of(value)]
    patterns = ["|".join(map(_as_word, sorted(chunk))) for chunk in _chunks(words)]
    if short and keys:
        names = "|".join(re.escape(key.rpartition(".")[2]) for key in sorted(keys))
        patterns += [
            rf'(?i:"(?:{names})")\s{{0,8}}:\s{{0,8}}"?(?:{"|".join(chunk)})(?:$|[^0-9A-Za-z])'
            for chunk in _chunks(list(short))
        ]
    return patterns


def _as_word(value: str) -> str:
    """Return the pattern of a key between other signs; a sign at its own end needs no other."""
    before = r"(?:^|[^0-9A-Za-z])" if value[0].isalnum() else ""
    return f"{before}{re.escape(value)}{r'(?:$|[^0-9A-Za-z])' if value[-1].isalnum() else ''}"


_STATISTICS = 32


def forms_of(value: str) -> set[str]:
    """Return a key, and as the statistics of data files cut it off: by characters, or as Java counts."""
    in_java = value.encode("utf-16-le")[: 2 * _STATISTICS].decode("utf-16-le", errors="ignore")
    return {value, value[:_STATISTICS].rstrip(), in_java.rstrip()}

"""Texts as people read them: without the escapes of JSON, HTML, addresses, SQL, CSV and terminals."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

MAY_DIFFER = r"[\\%&\x1b]|''|\"\"|[^\x00-\x7f]"
"""A text without any of these has no other form."""


def plain_texts(text: str) -> Iterator[str]:
    r"""Yield a text, and its other forms.

    >>> list(plain_texts('"O\\u0027Neil"'))[-1], list(plain_texts(r'{\"a\":\"b\\/c\"}'))[-1]
    ('"O\'Neil"', '{"a":"b/c"}')
    >>> "C 17" in list(plain_texts("x=C%2017"))[-1], list(plain_texts("Sa\u0303o"))[-1] == "S\u00e3o"
    (True, True)
    """
    yield text
    plain = text
    for _ in range(3):  # JSON within JSON within JSON: a statistic of a record
        before, plain = plain, html.unescape(unquote(_ESCAPE.sub(_unescaped, _COLOUR.sub("", plain))))
        if plain == before:
            break
        yield plain
    plain = unicodedata.normalize("NFC", plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    yield plain
    yield plain.replace("''", "'").replace('""', '"')


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2])

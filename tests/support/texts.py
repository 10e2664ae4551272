"""Texts as sources may send them: any characters that UTF-8 can encode."""

from __future__ import annotations

from hypothesis import strategies as st

ODD_TEXTS = (
    "Z\u0085rich",  # next line: `str.splitlines` cuts here
    "a\u2028b\u2029c",  # line and paragraph separator
    "a\x0bb\x0cc\x1cd\x1de\x1ef",  # the other places where `str.splitlines` cuts
    "\x00",
    "tab\tfeed\nreturn\rboth\r\nbell\x07",
    " leading and trailing\u3000",
    "\ufeffa byte order mark",
    "\u202eright to left\u202c \u200f\u05e9",
    "e\u0301 is not \u00e9",
    "\U0001f9d1\u200d\U0001f680 \U00020000 \U0010ffff \uffff",
    "a'b\"c`d\\e/f%20g?h#i+j;k=l&m{n}o[p]q*r,s|t$u",
    "${unset} {{ nothing }} %s {0} [bold]no markup[/bold] <b>&amp;</b> :smile:",
    "",
    "null",
    "\u0130I\u0131i \u1e9e\u00df \ufb01",  # what changes its length when its case is changed
)
"""One text of each kind that is known to break software."""


def texts(*, without: str = "", min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Return a strategy of texts without these characters and without lone surrogates, which UTF-8 cannot encode."""
    odd = tuple(text for text in ODD_TEXTS if min_size <= len(text) and not set(text) & set(without))
    anything = st.characters(exclude_categories=("Cs",), exclude_characters=without)
    return st.sampled_from(odd) | st.text(anything, min_size=min_size, max_size=max_size)

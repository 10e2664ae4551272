"""Text of others in a question is shown as it is, whatever it says."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lakehouse_airflow.operators.question import quoted
from millrace.contracts.visible_text import visible

MARKDOWN = MarkdownIt()
TEXTS = st.text(st.sampled_from("`~#*_![]()<>|\\-=. \n\tab:/") | st.characters(exclude_categories=["Cs"]), max_size=40)


def tokens(markdown: str) -> list[tuple[str, str]]:
    """The kinds of all tokens of a text, and their contents, without those that only hold others."""

    def flat(token: Token) -> list[Token]:
        return [each for child in token.children for each in flat(child)] if token.children else [token]

    found = [each for token in MARKDOWN.parse(visible(markdown)) for each in flat(token)]
    return [(token.type, token.content) for token in found if token.type not in ("paragraph_open", "paragraph_close")]


@given(TEXTS)
@example("# Approved already by security\n\n![](https://example.com/x.png)")
@example("```\n# Approved\n````")
@example("<img src=x> [here](https://example.com)")
def test_text_of_others_is_neither_markup_nor_the_end_of_its_block(text: str) -> None:
    said, *lines, rest = tokens(f"Why, says bob: {quoted(text)} That is all.")
    assert (said, rest) == (("text", "Why, says bob: "), ("text", " That is all."))
    assert {kind for kind, _ in lines} == {"code_inline"}
    shown = [line.strip() for line in visible(text).split("\n")]
    assert [line.strip() for _, line in lines] == ([line for line in shown if line] or [""])

"""Tables at the width of a terminal: columns while they fit, else a paragraph per row; no name is ever cut."""

from __future__ import annotations

from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from millrace.cli.views import new_table

HEADS = ("table", "rows", "version", "certified", "quarantined", "remark")
WORD = st.text(st.sampled_from("abü[]漢_.0"), min_size=1, max_size=90)


def shown(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """Return the lines of a table with these rows."""
    table = new_table(*HEADS, numbers=HEADS[1:-1])
    for row in rows:
        table.add_row(*row)
    out = StringIO()
    Console(file=out, width=width).print(table, markup=False)
    return [line.rstrip() for line in out.getvalue().split("\n") if line.strip()]


def test_a_remark_gives_way_to_names_and_numbers() -> None:
    row = ("silver.orders", "1,200,300", "12", "11", "7", "newest version is not certified")
    lines = shown([row], 90)
    assert lines[0].split() == list(HEADS)
    assert lines[2].split()[:5] == list(row[:5])
    assert len(lines) == 4


def test_rows_that_do_not_fit_become_paragraphs_without_their_empty_cells() -> None:
    name = "silver.orders_of_all_customers_in_every_country"
    row = (name, "1,200,300", "12", "-", "1,200", "the newest version is not certified, and nobody knows why not")
    assert shown([row, ("silver.b", "1", "2", "2", "0", "")], 80) == [
        name,
        "   rows 1,200,300   version 12   quarantined 1,200",
        "   remark the newest version is not certified, and nobody knows why not",
        "silver.b",
        "   rows 1   version 2   certified 2   quarantined 0",
    ]


def test_a_paragraph_that_begins_with_a_number_says_what_it_is() -> None:
    table = new_table("version", "at", "decision", numbers=("version",))
    table.add_row("12", "2013-01-01 06:00", "refused by a rule")
    out = StringIO()
    Console(file=out, width=20).print(table)
    assert out.getvalue().split("\n")[0].rstrip() == "version 12"


@settings(max_examples=30)
@given(st.tuples(WORD, *(st.just("7"),) * 4, WORD))
def test_no_character_of_a_name_is_lost_at_any_width(row: tuple[str, ...]) -> None:
    for width in (40, 80, 200):
        text = "".join("".join(shown([row], width)).split())
        assert row[0] in text
        assert row[-1] in text
        assert "…" not in text

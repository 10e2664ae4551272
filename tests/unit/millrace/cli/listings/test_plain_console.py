"""Values of rows do not command the terminal on which they are shown."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import RenderableType
from rich.text import Text

from millrace.cli.listings.plain_console import PlainConsole
from millrace.cli.reading.rows import result_table
from millrace.cli.views import FittingTable

HOSTILE = "a\x1b[2Jb\x1b]0;title\u202ee"
LISTED = FittingTable("value")
LISTED.add_row(HOSTILE)


@pytest.mark.parametrize("part", [HOSTILE, Text(HOSTILE), LISTED, result_table(pa.table({"v": [HOSTILE]}), 80)[0]])
def test_control_characters_of_a_text_are_shown(part: RenderableType) -> None:
    out = io.StringIO()
    PlainConsole(file=out, width=80, force_terminal=True, highlight=False).print(part, markup=False)
    assert r"a\x1b[2Jb\x1b]0;title\u202ee" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


def test_the_console_keeps_its_colours() -> None:
    out = io.StringIO()
    PlainConsole(file=out, force_terminal=True, color_system="standard").print(Text("refused", style="red"))
    assert out.getvalue() == "\x1b[31mrefused\x1b[0m\n"

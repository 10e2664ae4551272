"""What a search has found, as a table."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from millrace.cli.views import count, new_table, size
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE
from millrace.erase.finding import Findings


def found_view(found: Findings) -> RenderableType:
    """Return a line for each place, and what was not searched."""
    numbers = ("rows", "mentions", "files", "size")
    table = new_table("place", "part", *numbers, "VACUUM may delete", numbers=numbers)
    for place in found.places:
        due = f"{place.due:{MINUTE}}" if place.due else ""
        counts = map(count, (place.rows, place.mentions, place.files))
        table.add_row(place.name, place.part.value, *counts, size(place.size), due)
    searched = f"{counted(found.files, 'file')} ({size(found.size)}) searched for {counted(found.subjects, found.kind)}"
    parts = [table] if found.places else [Text("Nothing was found.")]
    limits = [Text(f"not covered: {each}") for each in found.not_covered]
    unread = [Text(f"not searched: {each}", style="red") for each in found.unread]
    return Group(*parts, Text(searched), *limits, *unread)

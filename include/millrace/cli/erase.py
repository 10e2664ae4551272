"""`lakehouse erase`: what the lakehouse stores of a person.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millrace.cli.listings.as_json import AsJson

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millrace.erase.finding import Findings

erase = typer.Typer(no_args_is_help=True, help="Find what is stored of a person, by the keys that specs state.")


@erase.command("find")
def find_command(
    kind: Annotated[str, typer.Argument(help="What the keys identify, as `subject_keys` of the specs name it.")],
    subjects: Annotated[
        typer.FileText,
        typer.Option(help="A file with a key in each line, or - for stdin."),
    ],
    as_json: AsJson = False,
) -> None:
    """Search every file of the lakehouse, its landing files, its logs and reports for subjects; write nothing.

    Keys are no arguments, since other users of the machine see those.
    """
    from datetime import UTC, datetime

    from millrace.cli.catalog import command_catalog
    from millrace.cli.listings.as_json import show_listing
    from millrace.cli.output import missing_root
    from millrace.erase.finding import find
    from millrace.erase.reach import kinds_in
    from millrace.erase.subjects import read_subjects
    from millrace.errors import BadInputError
    from millrace.settings import Settings
    from millrace.specs.problem import did_you_mean

    settings = Settings()
    catalog = command_catalog(settings.tables)
    if kind not in (known := kinds_in(catalog.specs)):
        raise BadInputError(
            f"no spec states subject_keys of the kind {kind!r}",
            did_you_mean(kind, known) or "State it in the tables that deliver the key: subject_keys: {column: kind}",
        )
    found = find(read_subjects(kind, subjects), catalog, settings, datetime.now(UTC))
    show_listing([found], lambda: _view(found), *missing_root(settings.paths.root), as_json=as_json)


def _view(found: Findings) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from millrace.cli.views import count, new_table, size
    from millrace.contracts.counted import counted
    from millrace.contracts.time_format import MINUTE

    numbers = ("rows", "mentions", "files", "size")
    table = new_table("place", "part", *numbers, "VACUUM may delete", numbers=numbers)
    for place in found.places:
        due = f"{place.due:{MINUTE}}" if place.due else ""
        counts = map(count, (place.rows, place.mentions, place.files))
        table.add_row(place.name, place.part.value, *counts, size(place.size), due)
    searched = f"{counted(found.files, 'file')} ({size(found.size)}) searched for {counted(found.subjects, found.kind)}"
    parts = [table] if found.places else [Text("Nothing was found.")]
    limits = [Text(f"not covered: {each}") for each in found.not_covered]
    return Group(*parts, Text(searched), *limits)

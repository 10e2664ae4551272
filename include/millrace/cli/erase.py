"""`lakehouse erase`: what the lakehouse stores of a person, and certificates that it stores nothing any more.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millrace.cli.listings.as_json import AsJson, show_listing

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import RenderableType

    from millrace.erase.finding import Findings
    from millrace.erase.subjects import Subjects

erase = typer.Typer(
    no_args_is_help=True,
    help="Find what is stored of a person, by the keys that specs state, and certify what is gone.",
)

Kind = Annotated[str, typer.Argument(help="What the keys identify, as `subject_keys` of the specs name it.")]
SubjectsFile = Annotated[
    typer.FileBinaryRead, typer.Option("--subjects", help="A file with a key in each line, or - for stdin.")
]


@erase.command("find")
def find_command(kind: Kind, subjects: SubjectsFile, as_json: AsJson = False) -> None:
    """Search every file of the lakehouse, its landing files, its logs and reports for subjects; write nothing.

    Keys are no arguments, since other users of the machine see those.
    """
    _, found = _find(kind, subjects)
    show_listing([found], lambda: _view(found), as_json=as_json)


@erase.command("prove")
def prove(
    kind: Kind,
    subjects: SubjectsFile,
    request: Annotated[str, typer.Option(help="The name of the request elsewhere, such as DSR-2026-17; no key.")],
) -> None:
    """Search as `find` does and, if only older versions have something, write a certificate and print it as JSON.

    It fails where a newest version, a landing file, a log or a report still has something, and shows what.
    """
    import getpass

    from millrace.cli.output import show, show_problem
    from millrace.erase.certificates import Certificates, Erased, state_of
    from millrace.errors import BadInputError, ExitCode
    from millrace.settings import Settings

    named, found = _find(kind, subjects)
    if named.hide(request) != request:
        raise BadInputError("--request has a key of a subject", "Write a name that says nothing of the person.")
    if not any(table in found.versions for table in found.reached):
        raise BadInputError(
            f"none of the tables with keys was found: {', '.join(found.reached)}",
            f"Is {Settings().paths.root} the lakehouse? LAKEHOUSE_ROOT names it.",
        )
    if state_of(found) is Erased.STORED:
        show(_view(found))
        show_problem("No certificate was written: delete what was found, and mend what could not be searched.")
        raise typer.Exit(ExitCode.FAILED)
    certificate = Certificates(Settings().paths).write(found, request, getpass.getuser())
    typer.echo(certificate.text)
    show_problem(f"{certificate.content['state']}; SHA-256 {certificate.digest}")


@erase.command("certificates")
def certificates(as_json: AsJson = False) -> None:
    """List the certificates, after a check that none was changed or removed."""
    from rich.console import Group
    from rich.text import Text

    from millrace.erase.certificates import Certificates, in_words, require_chain
    from millrace.settings import Settings

    written = Certificates(Settings().paths).all()
    require_chain(written)
    lines = [Text(in_words(each)) for each in written] or [Text("There is no certificate yet.")]
    show_listing((each.content for each in written), lambda: Group(*lines), as_json=as_json)


def _find(kind: str, subjects: BinaryIO) -> tuple[Subjects, Findings]:
    """Search for the subjects of a file, and return both.

    Raises:
        BadInputError: no spec states the kind, or the file names no subject.
    """
    from datetime import UTC, datetime

    from millrace.cli.catalog import command_catalog
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
    named = read_subjects(kind, subjects.read())
    return named, find(named, catalog, settings, datetime.now(UTC))


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
    unread = [Text(f"not searched: {each}", style="red") for each in found.unread]
    return Group(*parts, Text(searched), *limits, *unread)

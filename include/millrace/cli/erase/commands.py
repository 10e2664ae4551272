"""The commands that erase people; as in `millrace.cli.app`, they import what they need when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millrace.cli.listings.as_json import AsJson, show_listing

if TYPE_CHECKING:
    from typing import BinaryIO

    from millrace.catalog import Catalog
    from millrace.erase.subjects import Subjects
    from millrace.settings import Settings

erase = typer.Typer(
    no_args_is_help=True,
    help="Find what is stored of a person, by the keys that specs state, erase it, and certify that it is gone.",
)

Kind = Annotated[str, typer.Argument(help="What the keys identify, as `subject_keys` of the specs name it.")]
SubjectsFile = Annotated[
    typer.FileBinaryRead, typer.Option("--subjects", help="A file with a key in each line, or - for stdin.")
]
Request = Annotated[str, typer.Option(help="The name of the request elsewhere, such as DSR-2026-17; no key.")]
Now = Annotated[
    bool, typer.Option("--now", help="Delete older versions at once, not when VACUUM may: nobody can read them then.")
]


@erase.command("find")
def find_command(kind: Kind, subjects: SubjectsFile, as_json: AsJson = False) -> None:
    """Search every file of the lakehouse, its landing files, its logs and reports for subjects; write nothing.

    Keys are no arguments, since other users of the machine see those.
    """
    from millrace.cli.erase.found import found_view
    from millrace.clock import utc_now
    from millrace.erase.finding import find
    from millrace.settings import Settings

    settings = Settings()
    found = find(*_asked(kind, subjects, settings), settings, utc_now())
    show_listing([found], lambda: found_view(found), as_json=as_json)


@erase.command("plan")
def plan(kind: Kind, subjects: SubjectsFile, request: Request, now: Now = False, as_json: AsJson = False) -> None:
    """Say what an erasure would do in every place that has something of the subjects; write nothing.

    It ends with the id of exactly that.
    """
    from millrace.cli.erase.erasing import show_plan
    from millrace.settings import Settings

    show_plan(kind, subjects, request, Settings(), now=now, as_json=as_json)


@erase.command("run")
def run(
    kind: Kind,
    subjects: SubjectsFile,
    request: Request,
    execute: Annotated[str, typer.Option("--execute", metavar="ID", help="Erase as `erase plan` has shown it.")],
    why: Annotated[str, typer.Option(help="The reason, for those who look at it later.")],
    now: Now = False,
) -> None:
    """Erase subjects from the newest versions of all tables, as shown; the same command goes on after an interruption.

    Older versions go when VACUUM deletes them: `erase status` says when.
    """
    from millrace.cli.erase.erasing import run_erasure
    from millrace.settings import Settings

    raise typer.Exit(run_erasure(kind, subjects, request, execute, why, Settings(), now=now))


@erase.command("status")
def status(as_json: AsJson = False) -> None:
    """List the erasures: what is done, what of older versions is due when, what holds it back, and certificates."""
    from millrace.cli.erase.erasing import show_status
    from millrace.settings import Settings

    show_status(Settings(), as_json=as_json)


@erase.command("prove")
def prove(
    kind: Kind,
    subjects: SubjectsFile,
    request: Request,
    judged: Annotated[
        str,
        typer.Option(metavar="WHY", help="You have looked at all mentions, and they may stay: say why, without a key."),
    ] = "",
) -> None:
    """Search as `find` does and, if only older versions have something, write a certificate and print it as JSON.

    It fails where a newest version, a landing file, a log or a report still has something, and shows what.
    """
    import getpass

    from millrace.cli.erase.found import found_view
    from millrace.cli.output import show, show_problem
    from millrace.clock import utc_now
    from millrace.erase.certificates import Certificates, Erased, state_of
    from millrace.erase.erasing import require_decided, require_name
    from millrace.erase.finding import find
    from millrace.erase.suppression import Suppressions
    from millrace.errors import BadInputError, ExitCode
    from millrace.settings import Settings

    settings = Settings()
    named, catalog = _asked(kind, subjects, settings)
    require_name(request, named)
    require_decided(request, named, settings.paths)
    if named.hide(judged) != judged:
        raise BadInputError("--judged has a key of a subject", "Write a reason that says nothing of the person.")
    found = find(named, catalog, settings, utc_now())
    if not any(table in found.versions for table in found.reached):
        raise BadInputError(
            f"none of the tables with keys was found: {', '.join(found.reached)}",
            f"Is {settings.paths.root} the lakehouse? LAKEHOUSE_ROOT names it.",
        )
    if state_of(found, judged=bool(judged)) is Erased.STORED:
        show(found_view(found))
        show_problem("No certificate was written: delete what was found, and mend what could not be searched.")
        if state_of(found, judged=True) is not Erased.STORED:
            show_problem("These are mentions alone: look at them. If they may stay, --judged WHY certifies the rest.")
        raise typer.Exit(ExitCode.FAILED)
    keys = Suppressions(settings.paths).digest_of(named)
    certificate = Certificates(settings.paths).write(found, request, getpass.getuser(), keys, judged)
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


def _asked(kind: str, subjects: BinaryIO, settings: Settings) -> tuple[Subjects, Catalog]:
    """Return the subjects of a file, and the specs.

    Raises:
        BadInputError: no spec states the kind, or the file names no subject.
    """
    from millrace.cli.catalog import command_catalog
    from millrace.erase.erasing import require_kind
    from millrace.erase.subjects import read_subjects

    catalog = command_catalog(settings.tables)
    require_kind(kind, catalog)
    return read_subjects(kind, subjects.read()), catalog

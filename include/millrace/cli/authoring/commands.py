"""The commands that help to write specs.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millrace.cli.completion import domain_names, table_names
from millrace.cli.listings.as_json import AsJson


def new(folder: Annotated[Path, typer.Argument(help="The folder of the project: a new one, or an empty one.")]) -> None:
    """Write a project of your own: specs, a DAG file, tests and settings, with a small example that runs at once."""
    from millrace.cli.authoring.new import write_project
    from millrace.cli.output import show
    from millrace.settings import Settings

    commands = write_project(folder, Settings())
    show(f"wrote the project {folder}; its example has three days of a shop:", *(f"  {line}" for line in commands))


def infer(
    folder: Annotated[str, typer.Argument(help="A feed's folder below the landing root.")],
    table: Annotated[str | None, typer.Option(help="Name of the table; default bronze.<folder>.")] = None,
    domain: Annotated[
        str | None, typer.Option(help="The business area of the table.", autocompletion=domain_names)
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write it below LAKEHOUSE_TABLES, into --domain, with a first silver spec.")
    ] = False,
) -> None:
    """Print a first spec for the files that a source has delivered: their columns, with types that fit the values.

    With --write, a silver spec is written as well if something in the files identifies a row, as `init` does.
    """
    from millrace.cli.authoring.infer import inferred_tables, write_source_specs
    from millrace.cli.output import show_problem
    from millrace.settings import Settings

    if write and not domain:
        raise typer.BadParameter("--write needs --domain: the business area that the table belongs to")
    settings = Settings()
    tables = inferred_tables(folder, table, domain, settings)
    for remark in tables.remarks:
        show_problem(f"not read: {remark}")
    if not write or not domain:
        typer.echo(tables.bronze, nl=False)
        if tables.silver:
            show_problem(f"There is a first spec of silver.{tables.name} too: --write --domain NAME writes both.")
        return
    for file in write_source_specs(settings.tables, domain, tables):
        typer.echo(f"wrote {file}")


def init(
    domain: Annotated[str, typer.Argument(help="The name of the new business area: small letters, digits and _.")],
    folder: Annotated[str, typer.Argument(help="A folder with the folders of its sources, or the folder of one.")],
    dags: Annotated[
        Path | None,
        typer.Option(help="Airflow's folder of DAG files; default [bold]dags[/bold] beside the folder of the specs."),
    ] = None,
) -> None:
    """Lay out a new domain from delivered files: bronze and silver specs, with evidence as comments, and its DAG file.

    What the files do not say stays a comment that begins with "decide". No file is overwritten.
    """
    from millrace.cli.authoring.init import new_domain, next_command, write_domain
    from millrace.cli.output import show, show_problem
    from millrace.cli.runs.reports import worst
    from millrace.settings import Settings

    settings = Settings()
    proposed = new_domain(domain, folder, dags or settings.tables.parent / "dags", settings)
    for file in write_domain(proposed):
        show(f"wrote {file}")
    for remark in (remark for source in proposed.sources for remark in source.remarks):
        show_problem(f"not read: {remark}")
    for source, error in proposed.failures.items():
        show_problem(f"{source}: no table is proposed: {error}")
    show("Review the comments in them, then load what was delivered:", f"  {next_command(proposed)}")
    raise typer.Exit(worst(error.exit_code for error in proposed.failures.values()))


def suggest(
    table: Annotated[str, typer.Argument(help="A table with a certified version.", autocompletion=table_names)],
    as_json: AsJson = False,
) -> None:
    """Print rules that fit the certified version of a table and that its spec lacks, each with the evidence for it.

    The version is read without Spark. Every rule passes on it; paste those that should hold for later versions, too.
    """
    from millrace.cli.authoring.suggest import as_items, suggested_yaml, suggestions
    from millrace.cli.listings.as_json import json_array
    from millrace.settings import Settings

    version, found = suggestions(table, Settings())
    typer.echo(json_array(as_items(found)) if as_json else suggested_yaml(version, found), nl=as_json)


def schema(
    write: Annotated[bool, typer.Option("--write", help="Write it to the file that editors read.")] = False,
) -> None:
    """Print the JSON Schema with which editors complete table specs, or write it beside the folder of the specs."""
    from millrace.paths import SCHEMA_FILE
    from millrace.settings import Settings
    from millrace.specs.schema import schema_text

    if write:
        file = Settings().tables.parent / SCHEMA_FILE
        file.write_text(schema_text(), encoding="utf-8")
        typer.echo(f"wrote {file}")
    else:
        typer.echo(schema_text(), nl=False)

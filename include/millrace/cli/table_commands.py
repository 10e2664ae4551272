"""The commands for single tables: query them, show how they differ from their specs, rebuild one, look at its gate.

As in `millrace.cli.app`, commands import what they need when they run.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from millrace.cli.completion import table_names
from millrace.cli.listings.as_json import AsJson, show_listing
from millrace.cli.output import missing_root, show, show_problem
from millrace.errors import ExitCode


class Engine(StrEnum):
    """An engine for whose SQL there is a script of views."""

    DUCKDB = "duckdb"
    SPARK = "spark"
    TRINO = "trino"


gate = typer.Typer(no_args_is_help=True, help="Show the results of a table's gate; let one refused version pass.")

GateTable = Annotated[str, typer.Argument(help="The table, as <layer>.<name>.", autocompletion=table_names)]


def diff(
    tables: Annotated[
        list[str] | None, typer.Argument(help="The tables; all tables if you name none.", autocompletion=table_names)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show how tables differ from their specs: what the next run applies, what to recompute, what to rebuild.

    Nothing is written, no Spark is started.
    """
    from millrace.cli.listings.diff import show_diffs
    from millrace.settings import Settings

    raise typer.Exit(show_diffs(tables or (), Settings(), as_json=as_json))


def health(
    tables: Annotated[
        list[str] | None, typer.Argument(help="The tables; all tables if you name none.", autocompletion=table_names)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the files, old files and log of tables, and what is to be done; of one table in detail. No Spark."""
    from millrace.cli.listings.health import show_health
    from millrace.settings import Settings

    raise typer.Exit(show_health(tables or (), Settings(), as_json=as_json))


def lineage(
    name: Annotated[
        str, typer.Argument(help="A table, or a column such as silver.flights.status.", autocompletion=table_names)
    ],
    as_json: AsJson = False,
) -> None:
    """Show where a table or a column comes from, where it goes, and what a change of the column breaks."""
    from millrace.cli.catalog import command_catalog
    from millrace.cli.listings.lineage import lineage_items, lineage_remark, lineage_view
    from millrace.settings import Settings

    catalog, is_column = command_catalog(Settings().tables), name.count(".") > 1
    items = lineage_items(name, catalog)
    remarks = (lineage_remark(items, catalog),) if is_column else ()
    show_listing(items, lambda: lineage_view(items, of_column=is_column), *remarks, as_json=as_json)


def rebuild(
    table: Annotated[str, typer.Argument(help="A table.", autocompletion=table_names)],
    downstream: Annotated[
        bool, typer.Option("--downstream", help="With the tables that read it, directly or not.")
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Let intervals delete more absent keys than max_deleted_percent.")
    ] = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Continue although some of its landing files are missing now.")
    ] = False,
    allow_refused: Annotated[
        bool, typer.Option("--allow-refused", help="Let the new table pass, whose gate has refused it; needs --why.")
    ] = False,
    why: Annotated[str, typer.Option(help="The reason, for those who look at it later.")] = "",
    cancel: Annotated[bool, typer.Option("--cancel", help="Give up the rebuild in progress.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the rows that the last rebuild replaced.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
) -> None:
    """Rebuild a table from its sources, next to the table in use; then one commit replaces the rows.

    Readers keep the certified version until the new version has passed its gate. A stopped rebuild resumes.
    """
    from millrace.cli.runs.job import rebuild_table
    from millrace.contracts.job.requests import RebuildRequest
    from millrace.settings import Settings

    if cancel and undo:
        raise typer.BadParameter("--cancel gives up a rebuild in progress, --undo reverts a finished one")
    request = RebuildRequest(
        downstream=downstream,
        allow_deletes=allow_deletes,
        allow_missing=allow_missing,
        allow_refused=allow_refused,
        cancel=cancel,
        undo=undo,
        why=why,
    )
    raise typer.Exit(rebuild_table(table, request, Settings(), dry_run=dry_run))


def verify(
    table: Annotated[
        str, typer.Argument(help="A gold table, or a silver table with a query.", autocompletion=table_names)
    ],
    sample: Annotated[
        int,
        typer.Option(
            min=0, help="Compare only the groups of so many values of refresh_by, others each time; 0 for all."
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare the certified version of a gold table with a computation from scratch, and refuse it if they differ.

    So can a silver table with a query be compared. Both read the same versions of the sources. Readers stay on the
    version; the next one must be computed whole.
    """
    from millrace.cli.runs.job import verify_table
    from millrace.settings import Settings

    raise typer.Exit(verify_table(table, sample, Settings(), as_json=as_json))


def query(
    sql: Annotated[str, typer.Argument(help="One query, in DuckDB's SQL; [bold]-[/bold] reads it from stdin.")],
    at: Annotated[
        str | None, typer.Option(help="Read what was certified at this time: 2013-01-04, or 2013-01-04T06:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="The most rows that a terminal shows; 0 for all.")] = 40,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV, as without a terminal.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON array.")] = False,
    parquet: Annotated[Path | None, typer.Option(help="Write a Parquet file.")] = None,
) -> None:
    """Query the tables at their certified versions: `lakehouse query "FROM silver.flights LIMIT 5"`.

    A query reads tables and nothing else: no file, no other host, and it changes nothing.
    """
    from millrace.cli.reading.query import Output, open_query, run_query
    from millrace.cli.selection import parse_instant
    from millrace.settings import Settings

    if as_csv + as_json + bool(parquet) > 1:
        raise typer.BadParameter("state one of --csv, --json and --parquet")
    text = sys.stdin.read() if sql == "-" else sql
    opened = open_query(text, Settings(), parse_instant(at) if at else None)
    run_query(opened, Output(limit, as_csv, as_json, parquet))


def table_diff(
    first: Annotated[
        str,
        typer.Argument(
            help="A table; at its certified version, or [bold]@5[/bold], [bold]@newest[/bold], or as certified at "
            "[bold]@2013-01-04T06:00Z[/bold].",
            autocompletion=table_names,
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            help="What to compare it with; by default the same table, certified.", autocompletion=table_names
        ),
    ] = None,
    other_root: Annotated[
        str | None, typer.Option(metavar="ROOT", help="The lakehouse of the second one, a folder or s3://...")
    ] = None,
    key: Annotated[
        str, typer.Option(help="Columns that identify a row, as a,b; by default those of the spec, else whole rows.")
    ] = "",
    limit: Annotated[int, typer.Option(min=0, help="The most examples of each kind, and partitions.")] = 5,
    own_columns: Annotated[
        bool, typer.Option("--own-columns", help="Compare what Millrace adds to rows, too, such as _batch_token.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a table, or two tables: rows that were added, removed and changed, by key. No Spark.

    For example `lakehouse table-diff silver.orders@5 silver.orders@7`.

    The exit code is 0 if they are equal, 1 if they differ; any other means that they were not compared.
    """
    from millrace.cli.output import show_error
    from millrace.cli.reading.table_diff import Options, show_difference
    from millrace.errors import MillraceError
    from millrace.reading.certified import lakehouse_at
    from millrace.settings import Settings

    if second is None and other_root is None and "@" not in first:
        raise typer.BadParameter(f"compare {first} with what? Write `{first}@5 {first}@7`, another table, --other-root")
    options = Options(tuple(name.strip() for name in key.split(",") if name.strip()), limit, own_columns, as_json)
    try:
        other = lakehouse_at(other_root) if other_root else None
        code = show_difference(first, second or first.partition("@")[0], other, Settings(), options)
    except MillraceError as error:
        if error.exit_code != ExitCode.FAILED:
            raise
        show_error(error)
        code = ExitCode.WRONG_USAGE
    raise typer.Exit(code)


def views(
    engine: Annotated[Engine, typer.Option(help="The engine whose SQL to print.")] = Engine.DUCKDB,
    write: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Instead write all scripts, a DuckDB file and a list in JSON there; or to s3://..."
        ),
    ] = None,
) -> None:
    """Print a SQL script with a view for each certified version, for other engines. LAKEHOUSE_VIEWS keeps a folder.

    The views stay on their versions until you run the script again.
    """
    from millrace.cli.reading.views import view_script, write_views
    from millrace.contracts.lake_path import lake_path
    from millrace.settings import Settings

    if write:
        try:
            folder = lake_path(write)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        lines, damage = write_views(Settings(), folder)
        show(*lines)
    else:
        script, damage = view_script(Settings(), engine)
        typer.echo(script, nl=False)
    for line in damage:
        show_problem(line)
    raise typer.Exit(ExitCode.FAILED if damage else ExitCode.OK)


@gate.command("show")
def gate_show(
    table: GateTable,
    limit: Annotated[int, typer.Option(min=1, help="The number of newest results to show, the newest last.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the checked versions: passed, refused and by which rules, overridden by whom and why."""
    from millrace.cli.gate_results import newest_results, result_facts, result_table, status_lines
    from millrace.settings import Settings

    settings = Settings()
    results = newest_results(table, settings, limit)
    remarks = (*status_lines(table, settings), *missing_root(settings.root))
    show_listing(map(result_facts, results), lambda: result_table(results), *remarks, as_json=as_json)


@gate.command("docs")
def gate_docs(table: GateTable) -> None:
    """Write the pages of Great Expectations for the newest result of the gate, and print where they are."""
    from millrace.cli.runs.data_docs import build_data_docs
    from millrace.settings import Settings

    typer.echo(build_data_docs(table, Settings()))


@gate.command("override")
def gate_override(
    table: GateTable,
    version: Annotated[int, typer.Option(help="The refused version that readers may use.")],
    reason: Annotated[str, typer.Option(help="Why; it is kept with the version.")],
) -> None:
    """Let one refused version pass: readers use it from now on. The rules check later versions again."""
    from millrace.cli.gate_results import override_refusal
    from millrace.settings import Settings

    show(*override_refusal(table, version, reason, Settings()))

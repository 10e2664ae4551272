"""`lakehouse`: check specs, plan and run intervals without Airflow, list tables and files.

Commands import what they need when they run, so that `lakehouse --help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millrace.cli.authoring.commands import infer, init, new, schema, suggest
from millrace.cli.completion import domain_names, table_names
from millrace.cli.erase.commands import erase
from millrace.cli.holds import hold
from millrace.cli.listings.as_json import AsJson, show_listing
from millrace.cli.output import ErrorsToExitCodes, missing_root, show
from millrace.cli.quarantine.commands import quarantine
from millrace.cli.repair.commands import repair
from millrace.cli.table_commands import diff, gate, health, lineage, query, rebuild, table_diff, verify, views
from millrace.contracts.counted import counted
from millrace.contracts.file_status import FileStatus
from millrace.errors import ExitCode

app = typer.Typer(
    name="lakehouse",
    cls=ErrorsToExitCodes,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    help="Check table specs, plan and run intervals, and look at the tables.",
    epilog="LAKEHOUSE_PROJECT is the project, LAKEHOUSE_ROOT, LAKEHOUSE_RUNS, LAKEHOUSE_LANDING, LAKEHOUSE_TABLES, "
    "LAKEHOUSE_JARS set folders, LAKEHOUSE_KAFKA the Kafka clusters. "
    "Exit codes: 0 fine, 1 failed, 2 wrong usage, 10 bad spec, 11 bad input, 12 not ready, 13 conflict, "
    "14 gate failed, 15 no Spark, 16 disk full, 17 inconsistent, 18 deletes refused.",
)

app.add_typer(quarantine, name="quarantine")
app.add_typer(gate, name="gate")
app.add_typer(erase, name="erase")
app.add_typer(hold, name="hold")
app.add_typer(repair, name="repair")

Domain = Annotated[
    str | None, typer.Option(help="The business area; optional if there is only one.", autocompletion=domain_names)
]
_DAY_OPTION = typer.Option("--interval", help="A UTC day (2013-01-01), or [bold]start/end[/bold] as ISO instants.")
LastDay = Annotated[str | None, typer.Option("--to", help="The last day, for several days; each is an interval.")]
Tables = Annotated[
    list[str] | None, typer.Option("--table", help="Only this table; may be repeated.", autocompletion=table_names)
]
Reprocess = Annotated[
    bool, typer.Option("--reprocess", help="Read the interval's bronze rows again, even if they were read.")
]
SkipMissing = Annotated[
    bool, typer.Option("--skip-missing", help="Skip and report a table whose landing folder is missing; do not wait.")
]


def _show_version(is_wanted: bool) -> None:
    """Print the version of Millrace, and end the command."""
    if is_wanted:
        from importlib.metadata import version

        typer.echo(f"lakehouse {version('millrace')}")
        raise typer.Exit


@app.callback()
def every_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that come before the name of a command, and give others no more rights to its files."""
    from millrace.new_files import restrict_new_files
    from millrace.settings import Settings

    settings = Settings()
    # Jars hold no rows, and the users of all tasks and drivers read them: only a stated umask closes them.
    if context.invoked_subcommand != "jars" or "umask" in settings.model_fields_set:
        restrict_new_files(settings)


@app.command()
def check(
    tables: Annotated[Path | None, typer.Option(help="Folder of the table specs; default LAKEHOUSE_TABLES.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check every table spec, without Spark and without data. With --json, wrong specs give their problems."""
    from millrace.cli.listings.specs import show_specs
    from millrace.settings import Settings

    show_specs(tables or Settings().tables, as_json=as_json)


@app.command()
def plan(
    interval: Annotated[str, _DAY_OPTION],
    to: LastDay = None,
    domain: Domain = None,
    table: Tables = None,
    reprocess: Reprocess = False,
    skip_missing: SkipMissing = False,
    as_json: AsJson = False,
) -> None:
    """Show what a run would do now, and its exit code. Nothing is written, no Spark is started."""
    from rich.console import Group

    from millrace.cli.runs.plan_views import plan_facts, plan_views
    from millrace.cli.runs.table_plans import plan_tables, reached_intervals
    from millrace.cli.selection import select
    from millrace.settings import Settings

    settings = Settings()
    selection = select(settings.tables, domain, table, interval, to)
    plans = plan_tables(selection, settings, reprocess=reprocess, skip_missing=skip_missing)
    show_listing(map(plan_facts, plans), lambda: Group(*plan_views(selection.domain, plans)), as_json=as_json)
    raise typer.Exit(reached_intervals(plans)[1])


app.command()(diff)
app.command()(health)
app.command()(lineage)


@app.command()
def run(
    interval: Annotated[str | None, _DAY_OPTION] = None,
    to: LastDay = None,
    domain: Domain = None,
    table: Tables = None,
    reprocess: Reprocess = False,
    skip_missing: SkipMissing = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Allow more deletes than max_deleted_percent, in these intervals.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Instead of an interval: load whatever is new, until stopped.")
    ] = False,
) -> None:
    """Run all layers, interval by interval in one Spark driver, with the jobs of Airflow; or follow their sources."""
    from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
    from millrace.cli.runs.intervals import follow_selection, run_selection
    from millrace.cli.selection import select, today
    from millrace.settings import Settings

    if follow == bool(interval) or (follow and (to or reprocess or skip_missing or allow_deletes)):
        raise typer.BadParameter(
            "state either --interval (with --to, --reprocess, --skip-missing, --allow-deletes), or --follow alone"
        )
    settings = Settings()
    selection = select(settings.tables, domain, table, interval or today(), to)
    if follow:
        raise typer.Exit(follow_selection(selection, settings))
    options = {"reprocess": reprocess, "skip_missing": skip_missing}
    person = decided_alone(AskingDag.DELETES, settings) if allow_deletes else ""
    raise typer.Exit(run_selection(selection, settings, **options, allow_deletes=person))


@app.command()
def maintain(
    domain: Domain = None,
    table: Tables = None,
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Only show what would be done, why, and what happens if it is left.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --plan: write a JSON array instead of a table.")
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Also delete what tables keep for less than 168 hours.")
    ] = False,
) -> None:
    """Do what tables need: verify groups, join or order files (OPTIMIZE), delete what nobody needs (VACUUM)."""
    from millrace.cli.listings.health import show_plan
    from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
    from millrace.cli.runs.intervals import maintain_selection
    from millrace.cli.selection import select, today
    from millrace.settings import Settings

    if as_json and not plan_only:
        raise typer.BadParameter("--json is for --plan alone")
    settings = Settings()
    selection = select(settings.tables, domain, table, today(), None)
    if plan_only:
        raise typer.Exit(show_plan(selection, settings, as_json=as_json))
    person = decided_alone(AskingDag.VACUUM, settings) if allow_deletes else ""
    raise typer.Exit(maintain_selection(selection, settings, person))


app.command()(rebuild)
app.command()(verify)


@app.command()
def tables(as_json: AsJson = False) -> None:
    """List the tables with their rows, size, newest and certified version."""
    from millrace.cli.catalog import command_catalog
    from millrace.cli.facts import read_facts
    from millrace.cli.progress import in_progress
    from millrace.cli.views import facts_table
    from millrace.control.ops_tables import OpsTables
    from millrace.control.repair.dropped import dropped_tables
    from millrace.control.repair.interrupted import interrupted_repairs
    from millrace.settings import Settings

    settings = Settings()
    catalog = command_catalog(settings.tables)
    facts = read_facts(in_progress(list(catalog.tables), "reading the tables"), settings.root)
    items = [{**vars(item), "has_valid_spec": item.table not in catalog.invalid} for item in facts]
    dropped = (each.words for each in dropped_tables(settings.paths))
    remarks = (*missing_root(settings.root), *interrupted_repairs(catalog.tables, OpsTables(settings.paths)), *dropped)
    show_listing(items, lambda: facts_table(facts, catalog.invalid), *remarks, as_json=as_json)
    raise typer.Exit(ExitCode.FAILED if any(item.damage for item in facts) else ExitCode.OK)


app.command()(query)
app.command(name="table-diff")(table_diff)
app.command()(views)


@app.command()
def files(
    table: Annotated[str, typer.Argument(help="A bronze table.", autocompletion=table_names)],
    interval: Annotated[str | None, typer.Option(help="Only files of this UTC day, or of start/end.")] = None,
    to: LastDay = None,
    status: Annotated[
        FileStatus | None,
        typer.Option(metavar="STATUS", help=f"Only files with this status: {', '.join(FileStatus)}."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the landing files of a bronze table, with the batch that loaded each, and the counts of its rows."""
    from millrace.cli.files import file_summary, file_table, select_files
    from millrace.cli.selection import parse_intervals
    from millrace.settings import Settings

    settings, intervals = Settings(), parse_intervals(interval, to) if interval else ()
    selected = select_files(table, settings, intervals, status)
    remarks = (file_summary(selected), *missing_root(settings.root))
    show_listing(selected, lambda: file_table(selected), *remarks, as_json=as_json)


@app.command()
def replay(files: Annotated[list[str], typer.Argument(help="Landing files, as `lakehouse files` names them.")]) -> None:
    """Load failed landing files that were delivered again: run their tables and all downstream, for their intervals.

    No file is ever loaded twice.
    """
    from millrace.cli.files import file_table
    from millrace.cli.replay import record_replays, replay_views, replays
    from millrace.cli.runs.intervals import run_selection
    from millrace.cli.runs.reports import worst
    from millrace.settings import Settings

    settings = Settings()
    planned = replays(files, settings)
    show(*replay_views(planned))
    record_replays(planned, settings)
    codes = [run_selection(selection, settings, reprocess=False) for selection in planned.selections]
    if codes:
        show("The files now:", file_table(replays(files, settings).files))
    raise typer.Exit(worst(codes))


@app.command(name="give-up")
def give_up(
    files: Annotated[list[str], typer.Argument(help="Landing files, as `lakehouse files` names them.")],
    reason: Annotated[str, typer.Option(help="Why runs should continue without them; it is kept with the files.")],
) -> None:
    """Continue without failed landing files: bronze does not try them again, and full snapshots do not wait for them.

    Their keys count as absent. A file that is delivered again with another content is loaded.
    """
    from millrace.cli.files import file_table
    from millrace.cli.replay import give_up_files
    from millrace.settings import Settings

    show(file_table(give_up_files(files, reason, Settings())))


@app.command()
def columns(
    table: Annotated[str, typer.Argument(help="A bronze table with on_drift: evolve.", autocompletion=table_names)],
    approve: Annotated[list[str] | None, typer.Option(help="Make this new field a column; may be repeated.")] = None,
    refuse: Annotated[
        list[str] | None, typer.Option(help="Keep it in _rescued, and withdraw an open question; may be repeated.")
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(help="Let the DAG column_approvals ask about it again; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the fields of records without a declared column; approve or refuse them, or ask about them again."""
    from millrace.cli.new_columns import column_table, decide_columns, with_values
    from millrace.settings import Settings

    settings = Settings()
    new_columns = decide_columns(table, approve or (), refuse or (), ask or (), settings)
    items = with_values(table, new_columns, settings)
    show_listing(items, lambda: column_table(items), as_json=as_json)


app.command()(new)
app.command()(init)
app.command()(infer)
app.command()(suggest)


@app.command()
def conflicts(table: Tables = None, as_json: AsJson = False) -> None:
    """Show which runs slowed each other down by conflicts and waits for leases, and what to change."""
    from millrace.cli.conflicts import advice, contention_table, contentions
    from millrace.settings import Settings

    settings = Settings()
    pairs, damage = contentions(table or (), settings)
    nothing = "No run had to wait or retry because of another run."
    remarks = (*(() if pairs else missing_root(settings.root)), *advice(pairs), *damage)
    show_listing(pairs, lambda: contention_table(pairs) if pairs else nothing, *remarks, as_json=as_json)
    raise typer.Exit(ExitCode.FAILED if damage else ExitCode.OK)


@app.command()
def metrics(
    write_to: Annotated[
        Path | None, typer.Option("--write-to", help="Write them to this file, whole or not at all, for node_exporter.")
    ] = None,
) -> None:
    """Print the metrics of the lakehouse for Prometheus.

    Airflow's web server answers with the same metrics at /lakehouse/metrics.

    Without it, let cron or a systemd timer run `lakehouse metrics --write-to FILE.prom` every minute.

    The file belongs into the folder that node_exporter reads (`--collector.textfile.directory`).
    """
    from prometheus_client import generate_latest, write_to_textfile

    from millrace.metrics.collector import LakehouseCollector
    from millrace.overview.lakehouse import LakehouseReader
    from millrace.settings import Settings

    if write_to and not write_to.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {write_to.parent}")
    settings = Settings()
    collector = LakehouseCollector(LakehouseReader(settings.paths, settings.tables))
    if write_to:
        write_to_textfile(str(write_to), collector)
    else:
        typer.echo(generate_latest(collector), nl=False)


app.command()(schema)


@app.command()
def jars(
    into: Annotated[Path | None, typer.Option(help="The folder; default LAKEHOUSE_JARS.")] = None,
) -> None:
    """Fetch the jars of Spark sessions, once, and archive Spark's classes, so that drivers start sooner.

    Each jar has the checksum that this version of Millrace knows. DEFAULT_ARTIFACT_REPOSITORY names a mirror of
    Maven Central. Without a network, copy the folder from a machine that has one.
    """
    from millrace.jars.class_archive import build, is_current
    from millrace.jars.java_jar import OWN_JARS, own_jar
    from millrace.jars.maven_jars import DRIVER_GROUPS, install, locked_jars, missing_jars, repository_name
    from millrace.settings import Settings

    folder, wanted = (into or Settings().jars).absolute(), locked_jars(*DRIVER_GROUPS)
    if missing := missing_jars(wanted, folder):
        show(f"Fetching {len(missing)} of {counted(len(wanted), 'jar')} from {repository_name()} ...")
    install(wanted, folder)
    for name in OWN_JARS:
        own_jar(name, folder).build()
    if not is_current(folder):
        show("Archiving Spark's classes: half a minute ...")
    archived = "and an archive of Spark's classes"
    if build(folder) is None:
        archived = "and no archive of Spark's classes, which this JDK does not make: drivers start more slowly"
    there = len(wanted) - len(missing)
    show(f"{folder} has {len(wanted) + len(OWN_JARS)} jars ({len(missing)} fetched, {there} were there), {archived}.")

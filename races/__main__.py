"""``python -m races``: race writers on local disk and on S3, with Millrace's log stores and with Delta's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from millrace.cli.output import console
from races.drivers import Crowd, Score, race
from races.places import NoSuchServerError, Place, PlaceName, place
from races.soak.run import Plan
from races.soak.run import soak as run_soak
from races.versions import Answers, Classpath, Race

app = typer.Typer(
    help=__doc__, no_args_is_help=True, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}
)

Places = Annotated[list[PlaceName] | None, typer.Option("--place", help="Where to race; all places by default.")]
Folder = Annotated[Path, typer.Option(help="Folder to work in.")]
DATA = Path("data/races")


@app.command()
def versions(
    where: Places = None,
    count: Annotated[int, typer.Option("--versions", min=1, help="The number of versions.")] = 1000,
    writers: Annotated[int, typer.Option(min=2, help="The number of processes.")] = 4,
    folder: Folder = DATA,
) -> None:
    """Processes commit the same versions at the same time: for each version, one process may win."""
    table = Table("place", "log store", "versions", "lost", "commit alone", "ratio to stock")
    ours = 0
    for site in _places(where, folder):
        classes = folder / "classes"
        Classpath(classes).compile()
        stock_ms = 0.0
        for store in (*site.stock, site.store):
            lost, alone = _raced(site, store, Classpath(classes), count, writers, folder)
            ours += lost if store == site.store else 0
            ratio = f"{alone.median_ms / stock_ms:.2f}" if stock_ms else ""
            stock_ms = alone.median_ms
            table.add_row(site.name, _short(store), str(count), str(lost), f"{alone.median_ms:.2f} ms", ratio)
    _end(console(), table, ours)


@app.command()
def drivers(
    where: Places = None,
    minutes: Annotated[float, typer.Option(help="The time for which the drivers append.")] = 10.0,
    spark: Annotated[int, typer.Option("--drivers", min=1, help="The number of Spark drivers.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each driver.")] = 3,
    delta_rs: Annotated[int, typer.Option(min=0, help="The number of delta-rs writers.")] = 0,
    stock_minutes: Annotated[float, typer.Option(help="The same for Delta's own log stores; 0 to skip them.")] = 1.0,
    folder: Folder = DATA,
) -> None:
    """Spark drivers append to one table: its log must have each acknowledged commit once."""
    table = Table("place", "log store", "writers", "acknowledged", "lost", "doubled", "errors", "table")
    ours = 0
    for site in _places(where, folder):
        for stock, length in ((True, stock_minutes), (False, minutes)):
            if not length:
                continue
            crowd = Crowd(spark, threads, delta_rs, length * 60, stock)
            score = race(site, crowd, folder.resolve() / "notes" / f"{site.name}-{'stock' if stock else 'ours'}")
            ours += 0 if stock else score.lost + score.doubled + bool(score.torn)
            table.add_row(site.name, "stock" if stock else _short(site.store), *_cells(crowd, score))
    _end(console(), table, ours)


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(help="The time for which writers are killed and stopped.")] = 30.0,
    writers: Annotated[int, typer.Option(min=1, help="The number of writers at once.")] = 8,
    seed: Annotated[int, typer.Option(help="The seed of random numbers.")] = 0,
    folder: Folder = DATA / "soak",
) -> None:
    """Load, merge, refresh, replay, restore, hold and maintain at once, killed at any time; then check every row."""
    out = console()
    score = run_soak(Plan(folder, minutes * 60, writers, seed=seed), say=lambda line: out.print(line, markup=False))
    table = Table("what", "endings")
    for kind, endings in sorted(score.ended.items()):
        table.add_row(kind, ", ".join(f"{count} {name}" for name, count in sorted(endings.items())))
    table.add_row("batches", ", ".join(f"{count} of {name}" for name, count in score.batches.items()))
    table.add_row("traces", ", ".join(f"{count} {name}" for name, count in score.traces.items()))
    table.add_row("signals sent", ", ".join(f"{count} {name}" for name, count in sorted(score.strikes.items())))
    out.print(table)
    verdict = "\n".join(["WRONG:", *score.problems]) if score.problems else "each is in its place, once."
    out.print(f"{score.events:,} events delivered; {verdict}", markup=False)
    sys.exit(1 if score.problems else 0)


def _raced(
    site: Place, store: str, classpath: Classpath, count: int, writers: int, folder: Path
) -> tuple[int, Answers]:
    """Return the number of lost acknowledged commits, and the answers to one writer without competitors."""
    pairs, environment = tuple(f"{key}={value}" for key, value in site.settings.items()), site.environment
    names = tuple(f"writer-{number}" for number in range(writers))

    def run(*who: str) -> tuple[Answers, str]:
        table = site.new_folder()
        log = f"{table}/_delta_log"
        if site.bucket is None:
            Path(log).mkdir()
        raced = Race(classpath, store, log, count, pairs, tuple(environment.items()))
        return raced.run(folder / "barrier", who), table

    answers, table = run(*names)
    alone, _ = run(names[0])
    contents = {version: text.strip() for version, text in site.log_of(table).items()}
    return answers.lost(contents), alone


def _cells(crowd: Crowd, score: Score) -> Iterator[str]:
    others = f" + {crowd.delta_rs} delta-rs" if crowd.delta_rs else ""
    errors = ", ".join(f"{count} {name}" for name, count in sorted(score.errors.items()))
    yield f"{crowd.drivers} drivers of {crowd.threads}{others}"
    yield from (f"{number:,}" for number in (score.acknowledged, score.lost, score.doubled))
    yield errors or "-"
    yield score.torn or "whole"


def _places(where: list[PlaceName] | None, folder: Path) -> Iterator[Place]:
    for name in where or list(PlaceName):
        try:
            with place(name, folder.resolve()) as site:
                yield site
        except NoSuchServerError as error:
            console().print(f"{name}: skipped: {error}", highlight=False)


def _short(store: str) -> str:
    return store.rsplit(".", 1)[-1]


def _end(out: Console, table: Table, ours: int) -> None:
    """Show the table; exit with 1 if Millrace's own log stores lost or doubled a commit."""
    out.print(table)
    sys.exit(1 if ours else 0)


if __name__ == "__main__":
    app()

"""``python -m races``: race writers on local disk and on S3, by Millrace's log stores and by Delta's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from include.cli.output import console
from races.drivers import Crowd, Score, race
from races.places import NoSuchServerError, Place, PlaceName, place
from races.soak.run import Plan
from races.soak.run import soak as run_soak
from races.versions import Answers, Classpath, Race

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

Places = Annotated[list[PlaceName] | None, typer.Option("--place", help="Where to race; everywhere when left out.")]
Folder = Annotated[Path, typer.Option(help="Folder to work in.")]
DATA = Path("data/races")


@app.command()
def versions(
    where: Places = None,
    count: Annotated[int, typer.Option("--versions", min=1, help="How many versions are raced for.")] = 1000,
    writers: Annotated[int, typer.Option(min=2, help="How many processes race for each of them.")] = 4,
    folder: Folder = DATA,
) -> None:
    """Processes commit the same versions at the same instant: of each version, one may be told that it won."""
    table = Table("place", "log store", "versions", "lost", "commit alone", "ratio to stock")
    ours = 0
    for found in _places(where, folder):
        classes = folder / "classes"
        Classpath(classes).compile()
        stock_ms = 0.0
        for store in (*found.stock, found.store):
            lost, alone = _raced(found, store, Classpath(classes), count, writers, folder)
            ours += lost if store == found.store else 0
            ratio = f"{alone.median_ms / stock_ms:.2f}" if stock_ms else ""
            stock_ms = alone.median_ms
            table.add_row(found.name, _short(store), str(count), str(lost), f"{alone.median_ms:.2f} ms", ratio)
    _end(console(), table, ours)


@app.command()
def drivers(
    where: Places = None,
    minutes: Annotated[float, typer.Option(help="How long the drivers append.")] = 10.0,
    spark: Annotated[int, typer.Option("--drivers", min=1, help="How many Spark drivers.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Of each of them.")] = 3,
    delta_rs: Annotated[int, typer.Option(min=0, help="How many writers of delta-rs beside them.")] = 0,
    stock_minutes: Annotated[float, typer.Option(help="The same by Delta's own log stores; 0 for not at all.")] = 1.0,
    folder: Folder = DATA,
) -> None:
    """Spark drivers append to one table: each commit that was acknowledged must be in its log, once."""
    table = Table("place", "log store", "writers", "acknowledged", "lost", "doubled", "errors", "table")
    ours = 0
    for found in _places(where, folder):
        for stock, length in ((True, stock_minutes), (False, minutes)):
            if not length:
                continue
            crowd = Crowd(spark, threads, delta_rs, length * 60, stock)
            score = race(found, crowd, folder.resolve() / "notes" / f"{found.name}-{'stock' if stock else 'ours'}")
            ours += 0 if stock else score.lost + score.doubled + bool(score.torn)
            table.add_row(found.name, "stock" if stock else _short(found.store), *_cells(crowd, score))
    _end(console(), table, ours)


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(help="How long writers are killed and stopped.")] = 30.0,
    writers: Annotated[int, typer.Option(min=1, help="How many at once.")] = 8,
    seed: Annotated[int, typer.Option(help="Of the dice.")] = 0,
    folder: Folder = DATA / "soak",
) -> None:
    """Load, merge, refresh, replay, OPTIMIZE and VACUUM at once, killed at any moment; then every row is looked for."""
    out = console()
    score = run_soak(Plan(folder, minutes * 60, writers, seed=seed), say=lambda line: out.print(line, markup=False))
    table = Table("what", "how it ended")
    for kind, endings in sorted(score.ended.items()):
        table.add_row(kind, ", ".join(f"{count} {name}" for name, count in sorted(endings.items())))
    table.add_row("batches", ", ".join(f"{count} of {name}" for name, count in score.batches.items()))
    table.add_row("signals sent", ", ".join(f"{count} {name}" for name, count in sorted(score.strikes.items())))
    out.print(table)
    verdict = "\n".join(["WRONG:", *score.problems]) if score.problems else "each is where it belongs, once."
    out.print(f"{score.events:,} events delivered; {verdict}", markup=False)
    sys.exit(1 if score.problems else 0)


def _raced(
    found: Place, store: str, classpath: Classpath, count: int, writers: int, folder: Path
) -> tuple[int, Answers]:
    """How many acknowledged commits are lost, and what one writer is told that has no rival."""
    pairs, environment = tuple(f"{key}={value}" for key, value in found.settings.items()), found.environment
    names = tuple(f"writer-{number}" for number in range(writers))

    def run(*who: str) -> tuple[Answers, str]:
        table = found.new_folder()
        log = f"{table}/_delta_log"
        if found.bucket is None:
            Path(log).mkdir()
        raced = Race(classpath, store, log, count, pairs, tuple(environment.items()))
        return raced.run(folder / "barrier", who), table

    answers, table = run(*names)
    alone, _ = run(names[0])
    contents = {version: text.strip() for version, text in found.log_of(table).items()}
    return answers.lost(contents), alone


def _cells(crowd: Crowd, score: Score) -> Iterator[str]:
    beside = f" + {crowd.delta_rs} delta-rs" if crowd.delta_rs else ""
    errors = ", ".join(f"{count} {name}" for name, count in sorted(score.errors.items()))
    yield f"{crowd.drivers} drivers of {crowd.threads}{beside}"
    yield from (f"{number:,}" for number in (score.acknowledged, score.lost, score.doubled))
    yield errors or "-"
    yield score.torn or "whole"


def _places(where: list[PlaceName] | None, folder: Path) -> Iterator[Place]:
    for name in where or list(PlaceName):
        with _told_if_missing(name), place(name, folder.resolve()) as found:
            yield found


@contextmanager
def _told_if_missing(name: PlaceName) -> Iterator[None]:
    try:
        yield
    except NoSuchServerError as error:
        console().print(f"{name}: left out: {error}", highlight=False)


def _short(store: str) -> str:
    return store.rsplit(".", 1)[-1]


def _end(out: Console, table: Table, ours: int) -> None:
    """Show the table; fail where Millrace's own log stores lost or doubled anything."""
    out.print(table)
    sys.exit(1 if ours else 0)


if __name__ == "__main__":
    app()

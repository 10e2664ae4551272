"""Lay out a new domain: find the sources of a landing folder, and propose a bronze and a silver table for each."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import count
from pathlib import PurePosixPath
from tempfile import TemporaryDirectory

from psutil import virtual_memory
from pydantic import ByteSize

from millrace.contracts.counted import counted
from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.landing import Landing
from millrace.control.landing.on_disk import TOP
from millrace.control.landing.reader_process import read_apart
from millrace.errors import BadInputError, NotReadyError, first_line
from millrace.inference.column_names import plain_name
from millrace.inference.day_folders import day_of
from millrace.inference.delivered_files import files_of_source, has_known_format, paths_below
from millrace.inference.first_silver import silver_text
from millrace.inference.first_spec import guessed_source

_OF_A_TIME = re.compile(r".*=.*|[\d_.T:-]+")
"""A folder of one day, hour or other part of a source, such as `date=2013-01-01` or `2013`."""

_MOST_UNREAD = 5
"""The number of lines and files that are named; the others are counted."""

_NO_SILVER = """\
# decide: no column and no pair of columns identifies a row of the delivered files, so that no silver table is proposed.
# If you know the keys, describe it in silver/{domain}/{name}.yaml (docs/reference/silver.md).
"""


@dataclass(frozen=True)
class SourceTables:
    """The tables that are proposed for one source.

    Attributes:
        folder: the folder of the source, as the landing names it.
        name: the name of its tables, without the layer.
        bronze: the text of the bronze spec.
        silver: the text of the silver spec; empty if nothing identifies a row.
        days: the days of its folders, such as `date=2013-01-01`, in their order; none without such folders.
        unread: the lines and files that could not be read, each with the cause; the tables are proposed without them.
    """

    folder: str
    name: str
    bronze: str
    silver: str
    days: tuple[date, ...]
    unread: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What could not be read, in a few lines; empty if everything was read."""
        more = len(self.unread) - _MOST_UNREAD
        return [*self.unread[:_MOST_UNREAD], *([f"and {more:,} more lines or files"] if more > 0 else [])]


def source_folders(landing: Landing, folder: str) -> dict[str, tuple[date, ...]]:
    """Return the folders of sources below a folder, with the days of their day folders.

    A source's folder has the files, directly or in folders of days and other times. A folder within the folder of
    another source belongs to that source.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format is below it.
    """
    paths = [path for path in paths_below(landing, folder) if has_known_format(path)]
    if not paths:
        raise NotReadyError(
            f"{landing.location(folder)} holds no file of a known format (CSV, JSON, Parquet, Avro)",
            "Have the sources deliver a first file each: a domain is laid out from what was delivered.",
        )
    days: dict[str, set[date]] = {}
    for path in paths:
        source, times = _split(path.removeprefix(f"{folder}/"))
        within = "/".join(part for part in (folder if folder != TOP else "", source) if part) or TOP
        day = day_of("/".join(times))
        days.setdefault(within, set()).update([day] if day else [])
    outer = [source for source in days if not any(_is_below(source, other) for other in days)]
    return {source: tuple(sorted(days[source])) for source in sorted(outer)}


def _split(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder of a file's source, and the folders of times below it.

    >>> _split("shop/orders/date=2013-01-01/a.csv"), _split("2013/01/a.csv")
    (('shop/orders', ('date=2013-01-01',)), ('', ('2013', '01')))
    """
    folders = PurePosixPath(path).parts[:-1]
    first = next((number for number, name in enumerate(folders) if _OF_A_TIME.fullmatch(name)), len(folders))
    return "/".join(folders[:first]), folders[first:]


def _is_below(folder: str, other: str) -> bool:
    return folder.startswith(f"{other}/") or (other == TOP and folder != TOP)


def table_name(folder: str, domain: str, taken: Collection[str]) -> str:
    """Return a name for the tables of a source that is valid, and that no other table has.

    >>> [table_name(folder, "shop", {"orders"}) for folder in ("Order Lines", "orders", "2013 -- é", "日本")]
    ['order_lines', 'shop_orders', 'shop_2013_e', 'shop']
    """
    name = plain_name(folder)
    if not name[:1].isalpha() or name in taken:
        name = f"{domain}_{name}".rstrip("_")
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def source_tables(
    landing: Landing,
    folder: str,
    name: str,
    domain: str,
    days: tuple[date, ...],
    limits: FileLimits | None = None,
) -> SourceTables:
    """Read the files of a source, and propose its tables.

    Another process reads them, within the limits of memory and time: what a few bytes cost, their content decides. By
    default they are those of a load, but with half of the machine's memory, since all files are read at once.

    Raises:
        BadInputError: no file has the format of its name, no column has a name that a table can use, or the files are
            over a limit.
        NotReadyError: all of its files are empty.
    """
    limits = limits or FileLimits(memory=ByteSize(max(FileLimits().memory, virtual_memory().total // 2)))
    paths = files_of_source(landing, folder).paths
    size = sum(file.size for path in paths if (file := landing.file_at(path)))
    with TemporaryDirectory() as scratch:  # A process over its limits leaves what it has in there.
        propose = partial(_proposed, landing, folder, name, domain, days, scratch, limits.memory * 3 // 4)
        try:
            return read_apart(propose, size, limits)
        except ValueError as error:
            raise BadInputError(
                f"{counted(len(paths), 'file')} in {landing.location(folder)}: {first_line(error)}",
                "Leave such a file out of the folder; the spec that raises a limit is written by hand.",
            ) from error


def _proposed(
    landing: Landing, folder: str, name: str, domain: str, days: tuple[date, ...], scratch: str, memory: int
) -> SourceTables:
    with guessed_source(landing, folder, scratch, memory) as source:
        bronze = source.bronze_text(f"bronze.{name}")
        silver = silver_text(f"silver.{name}", f"bronze.{name}", source.rows, by_day=source.delivered.by_day)
        unread = source.guess.unread
    bronze = bronze if silver else bronze + _NO_SILVER.format(domain=domain, name=name)
    return SourceTables(folder, name, bronze, silver, days, unread)


def dag_text(domain: str, first_day: date) -> str:
    """Return the text of the file of the domain's DAG: daily runs from the first day that was delivered."""
    return f'''"""The domain {domain}: when its tables are loaded, and who looks after them."""

from datetime import UTC, datetime

from lakehouse_airflow.factory import build_domain_dag

dag = build_domain_dag(
    "{domain}",
    schedule="0 0 * * *",  # decide: a run loads the day that ends at this time, in UTC
    start_date=datetime({first_day.year}, {first_day.month}, {first_day.day}, tzinfo=UTC),
    owner="{domain}",  # decide: the team to ask
)
'''

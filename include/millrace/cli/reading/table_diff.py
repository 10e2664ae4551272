"""`lakehouse table-diff`: what differs between two versions of a table, two tables, or a table in two lakehouses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from unicodedata import normalize

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.selection import parse_instant
from millrace.cli.views import MISSING, new_table
from millrace.contracts.counted import counted
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec
from millrace.contracts.time_format import MINUTE
from millrace.contracts.visible_text import visible
from millrace.control.log.delta_log import latest_version
from millrace.errors import ExitCode, QueryError, SpecError
from millrace.overview.described_columns import row_key
from millrace.overview.lineage.restricted import Restrictions
from millrace.paths import LakehousePaths
from millrace.reading.certified import certified, require_table
from millrace.reading.stored_version import StoredVersion
from millrace.reading.table_difference import Kind, Sample, TableDifference, Values, table_difference
from millrace.settings import Settings

_NEWEST = "newest"


@dataclass(frozen=True)
class Options:
    """The options of the command.

    Attributes:
        key: the columns that identify a row; empty for those of the specs.
        samples: the most rows of each kind, and of partitions, that are shown.
        own_columns: whether to compare Millrace's own columns, too.
        as_json: whether to write JSON.
    """

    key: tuple[str, ...] = ()
    samples: int = 5
    own_columns: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class ComparedVersion:
    """A version as a person has named it.

    Attributes:
        table: the table.
        version: the version.
        root: the lakehouse.
        certified_at: when it was certified; None if it was not named as certified.
    """

    table: str
    version: int
    root: str
    certified_at: datetime | None = None

    def __str__(self) -> str:
        """Return how it is shown."""
        at = f", certified {self.certified_at:{MINUTE}} UTC" if self.certified_at else ""
        return f"{self.table} version {self.version}{at}"


def show_difference(first: str, second: str, other: LakehousePaths | None, settings: Settings, options: Options) -> int:
    """Compare two tables or versions, show what differs, and return the exit code: 0 for equal, 1 for different.

    Args:
        first: a table, or `<table>@<version>`, `<table>@newest`, or `<table>@<time>` for what was certified then.
        second: the same, of the lakehouse of `other`.
        other: the other lakehouse; None for the same.
        settings: the settings of the lakehouse.
        options: the options of the command.

    Raises:
        QueryError: the specs name different keys, or a key is no column of both.
        UnknownNameError: there is no such table or version.
        NotReadyError: no version is certified, or a version can no longer be read.
    """
    places = [settings.paths, other or settings.paths]
    versions = [_named_version(text, paths) for text, paths in zip((first, second), places, strict=True)]
    specs = _specs(settings)
    restrictions = Restrictions(specs)
    restricted = restrictions.of(versions[0].table) | restrictions.of(versions[1].table)
    before, after = (
        StoredVersion(paths.table(version.table), version.version)
        for paths, version in zip(places, versions, strict=True)
    )
    found = table_difference(
        before,
        after,
        options.key or _common_key(specs, versions),
        restricted=restricted,
        samples=options.samples,
        own_columns=options.own_columns,
    )
    item = {"first": versions[0], "second": versions[1], "is_equal": found.is_equal, **vars(found)}
    view = lambda: Group(*_parts(found, versions, options.samples))  # noqa: E731
    show_listing([{**item, "unchanged": found.unchanged}], view, *_remarks(found, restricted), as_json=options.as_json)
    return ExitCode.OK if found.is_equal else ExitCode.FAILED


def _named_version(text: str, paths: LakehousePaths) -> ComparedVersion:
    table, _, at = text.partition("@")
    root = str(paths.root)
    if at == _NEWEST or at.isdecimal():
        require_table(table, paths)
        return ComparedVersion(table, int(at) if at.isdecimal() else latest_version(paths.table(table)), root)
    version = certified(table, paths.root, at=parse_instant(at) if at else None)
    return ComparedVersion(table, version.version, root, version.certified_at)


def _specs(settings: Settings) -> Mapping[str, AnySpec]:
    """Return the sound specs; none if there is no folder of specs."""
    try:
        return command_catalog(settings.tables).specs
    except SpecError:
        return {}


def _common_key(specs: Mapping[str, AnySpec], versions: Sequence[ComparedVersion]) -> tuple[str, ...]:
    keys = {version.table: row_key(specs[version.table]) for version in versions if version.table in specs}
    if len(set(keys.values())) > 1:
        named = "; ".join(f"{table}: {', '.join(key) or 'none'}" for table, key in keys.items())
        raise QueryError(f"the two tables have different keys ({named})", "State --key with columns of both.")
    return next(iter(keys.values()), ())


def _parts(found: TableDifference, versions: Sequence[ComparedVersion], most: int) -> Iterator[RenderableType]:
    first, second = versions
    yield Text(f"from {first}{f' in {first.root}' if first.root != second.root else ''}")
    yield Text(f"to   {second}{f' in {second.root}' if first.root != second.root else ''}")
    yield Text(f"key: {', '.join(found.keys)}" if found.keys else "no key: whole rows are compared")
    if found.is_equal:
        yield Text(f"They are equal: {counted(found.rows_after, 'row')}.")
        return
    if found.schema:
        yield _schema_table(found)
    rows = new_table("rows", "added", "removed", "changed", "unchanged", "now", numbers=_NUMBERS)
    numbers = (found.rows_before, found.added, found.removed, found.changed, found.unchanged, found.rows_after)
    rows.add_row(*(f"{number:,}" for number in numbers))
    yield rows
    if found.columns:
        columns = new_table("column", "changed rows", numbers=("changed rows",))
        for name, number in sorted(found.columns.items(), key=lambda item: -item[1]):
            columns.add_row(Text(visible(name)), f"{number:,}")
        yield columns
    if found.partitions:
        yield _partition_table(found, most)
        if len(found.partitions) > most:
            yield Text(f"... and {counted(len(found.partitions) - most, 'more partition')}: --json has all of them")
    if found.samples:
        yield _sample_table(found.samples)


_NUMBERS = ("rows", "added", "removed", "changed", "unchanged", "now")


def _schema_table(found: TableDifference) -> Table:
    table = new_table("column", "from", "to", "")
    for each in found.schema:
        is_in_both = each.before is not None and each.after is not None
        remark = ("values are compared" if each.is_compared else "values are not compared") if is_in_both else ""
        table.add_row(
            Text(visible(each.column)), *(Text(kind or MISSING) for kind in (each.before, each.after)), remark
        )
    return table


def _partition_table(found: TableDifference, most: int) -> Table:
    table = new_table("partition", "added", "removed", "changed", numbers=_NUMBERS)
    for each in found.partitions[:most]:
        table.add_row(_shown(each.partition), *(f"{number:,}" for number in (each.added, each.removed, each.changed)))
    return table


def _sample_table(samples: Sequence[Sample]) -> Table:
    """Return a line for each sample, and for each changed column of a changed row."""
    table = new_table("for example", "key", "column", "from", "to")
    for sample in samples:
        rows = f" ({counted(sample.rows, 'row')})" if sample.rows > 1 else ""
        head = (Text(f"{sample.kind}{rows}"), _shown(sample.key))
        if sample.kind is not Kind.CHANGED or sample.before is None or sample.after is None:
            table.add_row(*head, "", "", "")
            continue
        for name, before in sample.before.items():
            values = map(_value, distinct_texts(before, sample.after[name]))
            table.add_row(*head, Text(visible(name)), *values)
            head = (Text(), Text())
    return table


def _remarks(found: TableDifference, restricted: RestrictedColumns) -> Iterator[str]:
    twice = found.duplicates
    if twice.before or twice.after:
        key, before, after = twice.samples[0] if twice.samples else ({}, 0, 0)
        example = f" ({_shown(key)}: {before:,} and {after:,} rows)" if key else ""
        yield f"keys of several rows: {twice.before:,} in the first version, {twice.after:,} in the second{example}"
    if found.files_in_both:
        files = counted(found.files_in_both, "data file")
        yield f"read {counted(found.files_read, 'data file')}; not the {files} that both versions have"
    if restricted.others and not restricted.declared:
        yield "no value is shown: a table has no sound spec that says which columns are restricted"


def _shown(values: Values) -> Text:
    return Text(", ").join(Text.assemble(f"{visible(name)} ", _value(value)) for name, value in values.items())


def _value(value: str | None) -> Text:
    return Text("NULL", style="dim") if value is None else Text(visible(value))


def distinct_texts(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    r"""Return two different values such that a person sees the difference: with escapes, if they look alike.

    >>> distinct_texts("Oslo", "Bergen")
    ('Oslo', 'Bergen')
    >>> print(*distinct_texts("Oslo", "Oslo "), *distinct_texts("\u00e9", "e\u0301"))
    "Oslo" "Oslo " "\u00e9" "e\u0301"
    """
    if before is None or after is None or before == after or _look(before) != _look(after):
        return before, after
    return json.dumps(before), json.dumps(after)


def _look(text: str) -> str:
    return " ".join(normalize("NFKC", text).split())

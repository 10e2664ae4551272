"""What it costs to compute only the touched groups of a gold table, and what all of them, in bytes (ADR 42)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.lake_path import LakePath
from millrace.control.log.change_feed import changed_bytes
from millrace.control.log.followed_tables import table_at
from millrace.paths import LakehousePaths

SMALL = 4_000_000
"""If all groups cost fewer bytes, the touched ones are computed: the other rows stay as they are, for so little."""

TRACING = 60_000_000
"""To look for touched values, and to replace only their rows, costs as much CPU as to read so many bytes, whatever has
changed: about half a CPU-second. This and the next three are from 24 cases (ADR 42)."""

WRITTEN = 10
"""To write a byte of a gold table costs as much CPU as to read so many of its sources."""

TRACED = 2
"""To find touched values in a byte of changes costs as much as to read so many: the values are sorted and collected."""

MOST_LISTED = 100_000
"""More touched values are never listed: Delta keeps the list in the commit, as a text of megabytes."""

LISTED = 20_000
"""A touched value costs as much as to read so many bytes: it is part of the conditions on each table. To collect some
40,000 and to plan with them took some 7 CPU-seconds."""


@dataclass(frozen=True)
class RefreshCost:
    """The bytes of the data files that both ways of a refresh read and write.

    Attributes:
        sources: of the sources.
        table: of the gold table.
        changes: of the changes in the sources, from which the touched values follow.
        read: of the files of the sources that may have rows of touched values, by their statistics.
        rewritten: of the files of the gold table that may have groups of touched values.
        values: the number of touched values. This and the two before are 0 until the values are known.
        ranges: the number of ranges that take the place of the values, if a list of these would be too long.
        sizes: the name of each data file of the sources and of the table -> its bytes.
    """

    sources: int
    table: int
    changes: int
    read: int = 0
    rewritten: int = 0
    values: int = 0
    ranges: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def whole(self) -> int:
        """What all groups cost."""
        return self.sources + WRITTEN * self.table

    @property
    def incremental(self) -> int:
        """What the touched groups cost, as far as it is known."""
        return (
            TRACING
            + TRACED * self.changes
            + self.read
            + (1 + WRITTEN) * self.rewritten
            + LISTED * (self.ranges or self.values)
        )

    @property
    def is_small(self) -> bool:
        """Whether both tables are so small that the touched groups are computed, whatever they cost."""
        return self.whole < SMALL

    @property
    def is_whole_cheaper(self) -> bool:
        """Whether all groups are to be computed."""
        return not self.is_small and self.whole < self.incremental

    @property
    def most_values(self) -> int:
        """The most touched values that are listed: a longer list would cost as much as all groups, or be too long.

        More are computed by ranges that contain them.
        """
        left = self.whole - TRACING - TRACED * self.changes
        return MOST_LISTED if self.is_small else max(0, min(left // LISTED, MOST_LISTED))

    def of_values(self, values: int, ranges: int = 0) -> RefreshCost:
        """Return the cost with the number of touched values, and of the ranges that contain them."""
        return replace(self, values=values, ranges=ranges)

    def of_files(self, read: Iterable[str], rewritten: Iterable[str]) -> RefreshCost:
        """Return the cost with the addresses of the files of both tables."""
        return replace(self, read=self._size(read), rewritten=self._size(rewritten))

    def figures(self) -> dict[str, int]:
        """Return all figures but those of single files, for the report of a run."""
        names = ("sources", "table", "changes", "read", "rewritten", "values", "ranges", "whole", "incremental")
        return {name: getattr(self, name) for name in names}

    def in_words(self, column: str = "") -> str:
        """Return in words what the touched values of a column cost, and what all of them; without a column the changes.

        >>> cost = RefreshCost(90_000_000, 2_000_000, changes=90_000, read=1_200_000, values=3)
        >>> print(cost.in_words("day").replace(", which", ",\\nwhich"))
        3 values of day changed (changes of 90.0 kB): reads 1.2 MB of 90.0 MB, rewrites 0 B of 2.0 MB,
        which costs as much as reading 61.4 MB, all groups 110.0 MB
        >>> cost = RefreshCost(90_000_000, 2_000_000, changes=90_000, read=1_200_000, values=3_000, ranges=2)
        >>> print(cost.in_words("basket").partition(", rewrites")[0])
        at least 3,000 values of basket changed, in 2 ranges (changes of 90.0 kB): reads 1.2 MB of 90.0 MB
        >>> RefreshCost(40_000_000, 2_000_000, changes=60_000).in_words()
        'to trace changes of 60.0 kB costs as much as reading 60.1 MB, all groups 60.0 MB'
        """
        changes, sources = in_bytes(self.changes), in_bytes(self.sources)
        costs = f"costs as much as reading {in_bytes(self.incremental)}, all groups {in_bytes(self.whole)}"
        if not self.values:
            return f"to trace changes of {changes} {costs}"
        changed = f"{counted(self.values, f'value of {column}', f'values of {column}')} changed"
        if self.ranges:
            changed += f", in {counted(self.ranges, 'range')}"
        if self.ranges or not self.read:
            changed = f"at least {changed}"
        changed += f" (changes of {changes})"
        if not self.read:
            return f"{changed}, and the sources have {sources}"
        rewrites = f"rewrites {in_bytes(self.rewritten)} of {in_bytes(self.table)}"
        return f"{changed}: reads {in_bytes(self.read)} of {sources}, {rewrites}, which {costs}"

    def _size(self, files: Iterable[str]) -> int:
        return sum(self.sizes.get(unquote(file).rpartition("/")[2], 0) for file in files)


def cost_before_tracing(
    table: LakePath, version: int, sources: Mapping[str, tuple[int | None, int]], paths: LakehousePaths
) -> RefreshCost:
    """Return what the logs alone say: the sizes of both tables, and of the changes.

    Args:
        table: the folder of the gold table.
        version: its version.
        sources: source table -> (version consumed, version to consume up to).
        paths: the paths of the lakehouse.
    """
    spans = {paths.table(source): span for source, span in sources.items()}
    read = [_sizes(path, upto) for path, (_, upto) in spans.items()]
    stored = _sizes(table, version)
    return RefreshCost(
        sources=sum(sum(sizes.values()) for sizes in read),
        table=sum(stored.values()),
        changes=sum(changed_bytes(path, after, upto) for path, (after, upto) in spans.items() if after is not None),
        sizes={name: size for sizes in (*read, stored) for name, size in sizes.items()},
    )


def _sizes(table: LakePath, version: int) -> dict[str, int]:
    files = table_at(table, version).files.items()
    return {unquote(name).rpartition("/")[2]: file.size for name, file in files}

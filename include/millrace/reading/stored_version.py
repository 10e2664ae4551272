"""Any version of a table, certified or not, with its data files by name."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import logged_files, open_table
from millrace.control.log.whole_versions import missing_files, nearest_whole_version
from millrace.errors import NotReadyError, UnknownNameError, first_line
from millrace.reading.datasets import dataset_of, only_files


@dataclass(frozen=True)
class StoredVersion:
    """A version of a table.

    Attributes:
        path: the folder of the table, or its address in a bucket.
        version: the version.
    """

    path: LakePath
    version: int

    @cached_property
    def delta(self) -> DeltaTable:
        """The version, opened with delta-rs.

        Raises:
            UnknownNameError: there is no table at the path, or it does not have the version yet.
            NotReadyError: Delta has removed its log; the message names the nearest version that is whole.
        """
        try:
            return open_table(self.path, self.version)
        except (DeltaError, OverflowError) as error:  # no table has a version of more than 64 bits
            # delta-rs finds no table either where it only finds no log of the version.
            if (newest := latest_version(self.path)) < 0:
                raise UnknownNameError(f"there is no table at {self.path}") from error
            if self.version > newest:
                cause = f"{self.path} has no version {self.version}"
                raise UnknownNameError(cause, f"The newest version is {newest}.") from error
            raise self._unreadable(first_line(error)) from error

    @cached_property
    def files(self) -> dict[str, int | None]:
        """Data file, named as in the log -> its number of rows; None if the log does not say so."""
        listed = logged_files(self.delta)
        paths, name = listed["path"].to_pylist(), "num_records"
        counts = listed[name].to_pylist() if name in listed.column_names else [None] * len(paths)
        return dict(zip(paths, counts, strict=True))

    @cached_property
    def dataset(self) -> ds.FileSystemDataset:
        """The rows, as an Arrow dataset.

        Raises:
            MisfitError: the files alone do not have the rows, as with deletion vectors.
        """
        return dataset_of(self.delta, self.path)

    def dataset_of_files(self, files: Set[str]) -> ds.FileSystemDataset:
        """Return the rows of some of the files.

        Raises:
            NotReadyError: a file is gone; the message names the nearest version that is whole.
        """
        if missing := missing_files(self.path, sorted(files)):
            raise self._unreadable(f"{counted(len(missing), 'data file is', 'data files are')} gone: {min(missing)}")
        return only_files(self.dataset, files)

    def count_rows(self) -> int:
        """Return the number of rows: by the log, or by the files if it does not say so."""
        counts = [count for count in self.files.values() if count is not None]
        return sum(counts) if len(counts) == len(self.files) else int(self.dataset.count_rows())

    def _unreadable(self, reason: str) -> NotReadyError:
        nearest = nearest_whole_version(self.path, self.version)
        way_out = "No later version is whole either." if nearest is None else f"Read version {nearest} or a later one."
        return NotReadyError(f"{self.path} version {self.version} can no longer be read: {reason}", way_out)

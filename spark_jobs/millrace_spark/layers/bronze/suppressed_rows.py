"""The records of erased subjects: a batch leaves out those who were on the list when it was planned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import SuppressedKeys
from millrace.erase.suppression import Suppressions
from millrace.paths import LakehousePaths
from millrace_spark.quality.rules.row_rules import REFUSALS
from millrace_spark.transforms.suppressed import suppression


class SuppressedRows:
    """Leaves out the records of a bronze table whose key is that of an erased subject."""

    def __init__(self, paths: LakehousePaths, spec: BronzeSpec) -> None:
        self._spec = spec
        self._list = Suppressions(paths)
        self._of = cache(self._list.of)

    def pin(self) -> SuppressedKeys | None:
        """Return the list as it is now; None if it has nobody whom the table could hold."""
        keys = self._spec.subject_keys
        newest = self._list.newest(set(keys.values())) if keys else 0
        return SuppressedKeys(upto=newest, columns=keys) if newest else None

    def drop(self, checked: DataFrame, pinned: SuppressedKeys | None) -> DataFrame:
        """Return records with refusals, where those of erased subjects have one alone: to be dropped.

        So nobody sees them, also if they fail other rules: no quarantine keeps them, and no finding has a value.
        """
        found = list(self._suppressions(pinned)) if pinned else []
        return checked.withColumn(REFUSALS, F.coalesce(*found, F.col(REFUSALS))) if found else checked

    def _suppressions(self, pinned: SuppressedKeys) -> Iterator[Column]:
        for column, kind in pinned.columns.items():
            if listed := self._of(kind, pinned.upto):
                yield suppression(column, self._spec.columns[column].type, kind, listed.salt, listed.hashes)

"""The sixteen shapes of Delta's own merge benchmark (delta-io/delta, benchmarks/.../MergeTestCases.scala), on orders.

A shape takes a share of the target's files, and of the rows of these files a share that the merge matches, and another
share as rows that it does not match. Upstream gives the latter random keys outside the target; here they are new orders
between the known ones of the same files, which no bounds can tell from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from benchmarks.merging.orders import events

KeyRange = tuple[int, int]
"""The least and the greatest order of one data file."""

_INSERT = "WHEN NOT MATCHED THEN INSERT *"
_CLAUSES = {
    "single insert": _INSERT,
    "multiple insert": f"WHEN NOT MATCHED AND s.customer % 2 = 0 THEN INSERT * {_INSERT}",
    "delete": "WHEN MATCHED THEN DELETE",
    "upsert": f"WHEN MATCHED THEN UPDATE SET * {_INSERT}",
}
_SEED = 1835


@dataclass(frozen=True)
class Shape:
    """The shape of a merge.

    Attributes:
        does: which clauses the plain MERGE has.
        files: the share of the target's files that hold the keys.
        matched: the share of these files' rows that are in the change set.
        unmatched: so many new rows are in it, as a share of these files' rows.
    """

    does: Literal["single insert", "multiple insert", "delete", "upsert"]
    files: float
    matched: float
    unmatched: float

    @property
    def name(self) -> str:
        """Its name, also of a folder."""
        return f"{self.does}, files {self.files:g}, matched {self.matched:g}, new {self.unmatched:g}"

    @property
    def clauses(self) -> str:
        """The clauses of the plain MERGE of `s` into `t`, as in Delta's benchmark."""
        return _CLAUSES[self.does]

    def change_set(self, files: Sequence[KeyRange], table_rows: int) -> str:
        """Return SQL of the events, for a table with these files."""
        chosen = sample(files, self.files)
        known = _sampled(chosen, "2 * i", self.matched, event=1)
        new = _sampled(chosen, "2 * i - 1", self.unmatched, event=0)
        op = "delete" if self.does == "delete" else "upsert"
        # Neighbouring files may both reach to one key: a new order that came twice would be inserted twice by N.
        return events(" UNION ".join([*known, *new]), table_rows, op)


SHAPES = (
    *(Shape(does, 0.05, 0, new) for does in ("single insert", "multiple insert") for new in (0.05, 0.5, 1.0)),
    Shape("delete", 0.05, 0.05, 0),
    Shape("upsert", 0.05, 0.1, 0.01),
    Shape("upsert", 0.05, 0.0, 0.1),
    Shape("upsert", 0.05, 0.01, 0.1),
    Shape("upsert", 0.05, 0.1, 0.0),
    Shape("upsert", 0.5, 0.01, 0.001),
    Shape("upsert", 1.0, 0.01, 0.001),
    Shape("upsert", 0.05, 0.5, 0.001),
    Shape("upsert", 0.05, 0.99, 0.001),
    Shape("upsert", 0.05, 1.0, 0.001),
)


def sample(files: Sequence[KeyRange], share: float) -> list[KeyRange]:
    """Return a share of the files, at least one: always the same, scattered over the table as by Delta's hash."""
    places = sorted(range(len(files)), key=lambda place: sha256(f"{_SEED}/{place}".encode()).digest())
    return sorted(files[place] for place in places[: max(1, round(share * len(files)))])


def _sampled(files: Sequence[KeyRange], number: str, share: float, event: int) -> list[str]:
    if not share:
        return []
    chance = f"hash(i, '{number}', {_SEED}) % 1000000 < {share * 1_000_000:.0f}"
    return [
        f"SELECT {number} AS id, {event} AS event FROM range({low // 2}, {high // 2} + 1) t(i) WHERE {chance}"
        for low, high in files
    ]

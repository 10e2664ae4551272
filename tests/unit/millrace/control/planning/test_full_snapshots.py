"""A full snapshot counts only if all its files are loaded, whatever is delivered, lost, corrected or given up."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.report import FileRows, RowCounts
from millrace.control.ledger.events import FileEvent
from millrace.control.log.batch import BatchSources, FileFact, Stream, Winner
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.full_snapshots import FullSnapshots, SnapshotPlan
from millrace.errors import NotReadyError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, catalog_of, silver_spec
from tests.support.ledger.delta_tables import create_table, day, intent_of

BRONZE = bronze_spec()
ORDERS = Stream("bronze.orders")
DAYS = range(1, 4)


@dataclass
class Shop:
    """A bronze table with only a ledger, and a silver table that reads the snapshots that count.

    Attributes:
        folder: the folder of the lakehouse.
        scd: the SCD type of the silver table.
        delivered: (day, name) of each file -> whether it is sound.
        loaded: the files that bronze has loaded.
        given_up: the files that a person gave up.
        last: the sources of the last silver batch.
        taken: day of a snapshot that silver has read -> the files of that snapshot.
    """

    folder: Path
    scd: int
    delivered: dict[tuple[int, str], bool] = field(default_factory=dict)
    loaded: set[tuple[int, str]] = field(default_factory=set)
    given_up: set[tuple[int, str]] = field(default_factory=set)
    last: BatchSources = field(default_factory=BatchSources)
    taken: dict[int, set[tuple[int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spec = silver_spec(snapshot="full", sequence_by=[], stored_as_scd_type=self.scd)
        self.ops = OpsTables(LakehousePaths(self.folder))
        self.version = 0
        create_table(self.folder / "silver/orders")

    def deliver(self, number: int, *, is_sound: bool) -> None:
        """Deliver one more file of a day."""
        name = f"{sum(day_ == number for day_, _ in self.delivered)}.json"
        path = self.folder / "landing" / fact((number, name)).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, ns=(1, 1))
        self.delivered[number, name] = is_sound

    def load(self, number: int, limit: int) -> None:
        """Load some of the day's files into bronze in one batch, and record the torn ones as failed."""
        ledger = self.ops.ledger
        files = sorted(file for file in self.delivered.keys() - self.loaded - self.given_up if file[0] == number)
        torn = [file for file in files if not self.delivered[file]]
        ledger.record_files(
            FileEvent.FAILED, ORDERS.table, "id", day(number), [fact(file, defect="torn") for file in torn]
        )
        sound = [file for file in files if self.delivered[file]]
        if not sound:
            return
        self.version += 1
        intent = intent_of("id", number, stream=ORDERS, sources=BatchSources(more_files=len(sound) > limit))
        facts = tuple(fact(file) for file in sound[:limit])
        ledger.record_intent(intent, facts)
        winner = Winner(intent, self.version)
        ledger.record_committed([winner])
        ledger.record_closed(winner, RowCounts(), {file.path: FileRows(read=1, written=1) for file in facts})
        self.loaded |= set(sound[:limit])

    def give_up(self, file: tuple[int, str]) -> None:
        self.ops.ledger.record_files(
            FileEvent.GIVEN_UP, ORDERS.table, "id", day(file[0]), [fact(file, defect="by ann")]
        )
        self.given_up.add(file)

    def plan(self) -> SnapshotPlan:
        after = self.last.consumed_version(ORDERS.table, "id") if self.last.ranges else None
        sources = BatchSources(ranges={ORDERS.table: (after, self.version)}, source_ids={ORDERS.table: "id"})
        landing = str(self.folder / "landing")
        return FullSnapshots(catalog_of(BRONZE, self.spec), self.spec, landing, self.ops).plan(sources, self.last)

    def merge(self) -> None:
        """Read the snapshots that count, as a batch of silver does."""
        sources = self.plan().sources
        if sources is None or sources.snapshot_at is None:
            return
        waiting = {start.day for start in sources.waiting}
        if self.scd == 1:
            read = {sources.snapshot_at.day}
        elif sources.snapshots:
            read = {start.day for start in sources.snapshots}
        else:
            read = {number for number, _ in self.loaded} - waiting
        for number in read:
            self.taken[number] = {file for file in self.loaded if file[0] == number}
        self.last = sources

    def missing(self, number: int) -> set[tuple[int, str]]:
        """Return the files of a day that are neither loaded nor given up."""
        return {file for file in self.delivered if file[0] == number} - self.loaded - self.given_up


def fact(file: tuple[int, str], defect: str = "") -> FileFact:
    number, name = file
    return FileFact(f"orders/date=2013-01-{number:02d}/{name}", 1, 1, checksum=name, defect=defect)


@pytest.mark.parametrize("scd", [1, 2])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32))
def test_a_snapshot_is_read_only_when_all_its_files_are_loaded(
    tmp_path_factory: pytest.TempPathFactory, scd: int, seed: int
) -> None:
    shop, chance = Shop(tmp_path_factory.mktemp("shop"), scd), Random(seed)
    for _ in range(16):
        number = chance.choice(DAYS)
        torn = sorted(file for file, is_sound in shop.delivered.items() if not is_sound and file not in shop.given_up)
        match chance.choice(["deliver", "deliver", "load", "load", "correct", "give up", "merge", "merge"]):
            case "deliver":
                if number not in {day_ for day_, _ in shop.loaded}:
                    for _ in range(chance.randint(1, 3)):
                        shop.deliver(number, is_sound=chance.random() < 0.8)
            case "load":
                shop.load(number, limit=chance.choice([1, 9]))
            case "correct" if torn:
                shop.delivered[chance.choice(torn)] = True
            case "give up" if torn:
                file = chance.choice(torn)
                shop.load(file[0], 9)
                shop.give_up(file)
            case "merge" if shop.version:
                lacking = {day_ for day_ in DAYS if shop.missing(day_)}
                before = dict(shop.taken)
                shop.merge()
                fresh = {day_ for day_, files in shop.taken.items() if before.get(day_) != files}
                assert not fresh & lacking
    for file in shop.delivered:
        shop.delivered[file] = True
    for number in DAYS:
        shop.load(number, 99)
    shop.merge()
    loaded = {number: {file for file in shop.loaded if file[0] == number} for number, _ in shop.loaded}
    newest = max(loaded, default=0)
    expected = loaded if scd == 2 else {newest: loaded[newest]} if loaded else {}
    assert {number: shop.taken.get(number) for number in expected} == expected
    assert not shop.plan().delays


def test_a_landing_that_cannot_be_read_is_not_an_empty_landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, 1)
    for _ in range(2):
        shop.deliver(1, is_sound=True)
    shop.load(1, limit=1)
    assert shop.plan().delays

    def broken(folder: str) -> None:
        raise OSError(errno.EIO, "the disk does not answer", folder)

    with monkeypatch.context() as trouble:
        trouble.setattr(os, "scandir", broken)
        with pytest.raises(NotReadyError, match=r"date=2013-01-01 cannot be read now \(the disk does not answer\)"):
            shop.plan()
    (tmp_path / "landing").rename(tmp_path / "not mounted")
    with pytest.raises(NotReadyError):
        shop.plan()

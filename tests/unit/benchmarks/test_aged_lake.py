"""How much of the ledger an ordinary command reads: as many data files of an old lakehouse as of a young one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import aged_lake
from millrace.catalog import Catalog, load_catalog
from millrace.cli.facts import read_facts
from millrace.contracts.lake_path import LakePath
from millrace.control.gates.gates import Gates
from millrace.control.ledger import ops_table
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import read_position, table_id
from millrace.control.log.batch import FileFact, Stream
from millrace.control.planning.planner import Planner
from millrace.paths import LakehousePaths
from millrace.settings import Settings

YOUNG, OLD = 20, 80
A_FILE = 5
"""So many batches are in one data file of the ledger; it counts as full, so that none is put together with others."""

MOST = 10
"""Data files that whatever is asked of one table may read; the old one has 17 in each table of the ledger."""


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Settings]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aged_lake, "_AT_ONCE", A_FILE)
        patch.setattr(ops_table, "_FILE_BYTES", 1)
        folders = {number: tmp_path_factory.mktemp(str(number)) for number in (YOUNG, OLD)}
        for number, folder in folders.items():
            aged_lake.make(folder, number)
        yield {
            number: Settings(root=folder / "root", landing=str(folder / "landing"), tables=folder / "tables")
            for number, folder in folders.items()
        }


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[LakePath]:
    """The data files of the ledger that are read from now on, each as often as it is."""
    files, read_events = list[LakePath](), ops_table.read_events

    def reading(file: LakePath, wanted: pa.Schema, table: str, conditions: Mapping[str, Any]) -> Any:
        files.append(file)
        return read_events(file, wanted, table, conditions)

    monkeypatch.setattr(ops_table, "read_events", reading)
    return files


def plan_of_the_last_day(settings: Settings, catalog: Catalog, number: int) -> None:
    planner = Planner(catalog, settings)
    advised = [planner.advise(spec, aged_lake.day(number)) for spec in catalog.specs.values()]
    assert [one.certified_version for one in advised] == [number] * 3


def plan_of_an_old_day_without_and_with_a_late_file(settings: Settings, catalog: Catalog, _: int) -> None:
    planner, spec = Planner(catalog, settings), catalog.spec("bronze.a0")
    aged_lake.land(Path(settings.landing).parent, spec, 3)
    assert planner.advise(spec, aged_lake.day(3)).nothing_new
    late = Path(settings.landing) / "a0" / f"date={aged_lake.day(5).start:%Y-%m-%d}" / "late.json"
    late.parent.mkdir(parents=True, exist_ok=True)
    late.write_text("{}")
    assert planner.advise(spec, aged_lake.day(5)).files


def verdicts(settings: Settings, _: Catalog, number: int) -> None:
    gates = Gates(LakehousePaths(settings.root))
    assert [one.result.version for one in gates.results("silver.a0", 5)] == list(range(number - 4, number + 1))
    assert next(gates.certificates_below("silver.a0", number)).version == number - 1
    assert gates.certified("silver.a0") == number


def ledger_of(settings: Settings) -> tuple[Ledger, tuple[str, str]]:
    paths = LakehousePaths(settings.root)
    return Ledger(paths), ("bronze.a0", table_id(paths.table("bronze.a0")))


def last_batches(settings: Settings, _: Catalog, number: int) -> None:
    ledger, of_table = ledger_of(settings)
    assert [one.version for one in ledger.batches(*of_table, number - 2)] == [number - 1, number]
    last = ledger.last_recorded(*of_table, "main")
    assert last.version == number
    assert ledger.newest_number(*of_table, number) == number
    assert ledger.replaced_files(*of_table, number - 2, number) == ()
    assert ledger.history.closed_before(*of_table, "main", datetime.now(UTC) + timedelta(days=1)) == number


def an_old_interval(settings: Settings, _: Catalog, __: int) -> None:
    ledger, of_table = ledger_of(settings)
    batches = ledger.batches_of(*of_table, [aged_lake.day(3).start])
    assert [one.version for one in batches] == [3]
    assert ledger.records_in("bronze.a0", batches) == {aged_lake.day(3).start: 1}
    assert ledger.failed_files(*of_table, interval_start=[aged_lake.day(3).start]) == {}


def an_old_file(settings: Settings, _: Catalog, __: int) -> None:
    ledger, of_table = ledger_of(settings)
    path = f"a0/date={aged_lake.day(3).start:%Y-%m-%d}/3.json"
    loaded = ledger.loaded_files(*of_table)
    assert loaded.holds(FileFact(path, 1, 3, f"{3:064d}"), only_last=True)
    assert [file.path for file in loaded.facts([path])] == [path]


def listing(settings: Settings, catalog: Catalog, number: int) -> None:
    assert [one.certified_version for one in read_facts(catalog.specs, settings.root)] == [number] * 3


def where_it_stands(settings: Settings, catalog: Catalog, number: int) -> None:
    paths, ledger = LakehousePaths(settings.root), Ledger(LakehousePaths(settings.root))
    for spec in catalog.specs.values():
        position, _ = read_position(paths.table(spec.table), Stream(spec.table), ledger)
        assert position.last.version == number
        assert ledger.closed_rows(position.last)


ASKED = [
    plan_of_the_last_day,
    plan_of_an_old_day_without_and_with_a_late_file,
    verdicts,
    last_batches,
    an_old_interval,
    an_old_file,
    listing,
    where_it_stands,
]


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_as_much_of_the_ledger_is_read_however_old_it_is(
    ask: Callable[[Settings, Catalog, int], None], lakes: dict[int, Settings], read: list[LakePath]
) -> None:
    counts = {}
    for number, settings in lakes.items():
        read.clear()
        ask(settings, load_catalog(settings.tables), number)
        counts[number] = len(set(read))
    assert counts[OLD] <= max(counts[YOUNG], 1) <= MOST

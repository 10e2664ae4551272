"""Landing files that cannot be loaded: broken ones are tried a limited number of times, unreachable ones always."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact
from include.errors import NotReadyError
from include.paths import LakehousePaths
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import day
from tests.support.ledger.ingests import file_names, load, plan


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LakehousePaths(tmp_path / "lakehouse"))


def test_broken_files_are_separated_from_new_files(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    for name, content in (("a.json", "{}"), ("broken.json", "PAR1"), ("c.json", "{}"), ("empty.json", "")):
        deliver(name, content)
    found = plan(landing, ledger)
    assert file_names(found.new) == ["a.json", "c.json", "empty.json"]
    assert [(Path(file.path).name, file.defect[:27]) for file in found.broken] == [
        ("broken.json", "broken.json holds neither J")
    ]


def test_a_broken_file_is_given_up_after_max_attempts_until_it_changes_or_is_replayed(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    deliver("broken.json", "PAR1")
    for number in (1, 2):
        found = plan(landing, ledger, max_attempts_per_file=2)
        assert (found.attempts, found.given_up) == ({found.broken[0].path: number}, ())
        ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), found.broken)
    assert plan(landing, ledger, max_attempts_per_file=3).attempts == {found.broken[0].path: 3}

    third = plan(landing, ledger, read_file=lambda file: pytest.fail(f"{file.path} was read"), max_attempts_per_file=2)
    assert (file_names(third.given_up), third.broken, third.new) == (["broken.json"], (), ())

    os.utime(landing / found.broken[0].path, ns=(1, 1))
    touched = plan(landing, ledger, max_attempts_per_file=2)
    assert (file_names(touched.given_up), touched.broken, touched.attempts) == (["broken.json"], (), {})
    ledger.record_files(FileEvent.TOUCHED, "bronze.orders", "id", day(1), touched.touched)
    again = plan(landing, ledger, read_file=lambda file: pytest.fail(f"{file.path} was read"), max_attempts_per_file=2)
    assert (file_names(again.given_up), again.touched) == (["broken.json"], ()), "it is read once"

    ledger.record_files(FileEvent.REPLAYED, "bronze.orders", "id", day(1), [found.broken[0]])
    assert plan(landing, ledger, max_attempts_per_file=2).attempts == {found.broken[0].path: 1}
    for _ in range(2):
        ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), found.broken)
    deliver("broken.json", "{}\n")
    assert file_names(plan(landing, ledger, max_attempts_per_file=2).new) == ["broken.json"]


def test_a_file_that_the_disk_does_not_deliver_is_never_given_up_and_the_others_are_loaded(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    unreachable = [deliver(name) for name in ("b.json", "d.json")]
    for path in unreachable:
        path.unlink()
        path.symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO
    for name in ("a.json", "c.json", "e.json"):
        deliver(name)
    for number in range(1, 5):
        found = plan(landing, ledger, max_attempts_per_file=2)
        assert file_names(found.unreachable) == ["b.json", "d.json"]
        assert "Input/output error" in found.unreachable[0].defect
        assert (found.broken, found.given_up, found.attempts, found.later) == ((), (), {}, 0)
        assert file_names(load(landing, ledger, number)) == (["a.json", "c.json", "e.json"] if number == 1 else [])
    unreachable[0].unlink()
    deliver("b.json")
    assert file_names(plan(landing, ledger).new) == ["b.json"]


def test_a_store_that_delivers_none_of_three_files_is_not_asked_for_more(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    for name in "abcde":
        deliver(f"{name}.json")
    read: list[str] = []

    def read_file(file: FileFact) -> FileFact:
        read.append(Path(file.path).name)
        raise NotReadyError("no answer")

    with pytest.raises(NotReadyError, match="no answer"):
        plan(landing, ledger, read_file=read_file)
    assert read == ["a.json", "b.json", "c.json"]


def test_a_broken_file_that_is_delivered_again_is_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json", "PAR1")
    broken = plan(landing, ledger).broken
    ledger.record_files(FileEvent.FAILED, "bronze.orders", "id", day(1), broken)
    assert plan(landing, ledger).broken == broken
    deliver("a.json", "{}")
    assert file_names(load(landing, ledger)) == ["a.json"]
    assert plan(landing, ledger).broken == ()

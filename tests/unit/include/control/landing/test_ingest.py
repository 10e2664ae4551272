"""The landing files of a bronze batch: each content of a name is loaded once."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest

from include.control.landing.ingest import FilePlan, require_as_loaded
from include.control.landing.inspection import inspect
from include.control.landing.on_disk import LocalLanding
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact
from include.errors import BadInputError, ExitCode, NotReadyError
from include.paths import LakehousePaths
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import day, file_contents, intent_of
from tests.support.ledger.ingests import ORDERS, SPEC, file_names, load, plan
from tests.support.ledger.ledger_reading import loaded_contents


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LakehousePaths(tmp_path / "lakehouse"))


def test_all_files_of_a_first_delivery_are_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    deliver("b.json", '{"order_id": "2"}')
    deliver("other day.json", number=2)
    found = plan(landing, ledger)
    assert (file_names(found.new), found.broken, found.loaded) == (["a.json", "b.json"], (), 0)
    assert all(len(file.checksum) == 64 for file in found.new)


def test_a_missing_folder_is_not_ready(landing: Path, ledger: Ledger) -> None:
    with pytest.raises(NotReadyError):
        plan(landing, ledger)


def test_loaded_files_are_not_new_again_and_late_ones_are(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    loaded = load(landing, ledger)
    assert plan(landing, ledger) == FilePlan(loaded=len(loaded))
    deliver("late.json")
    found = plan(landing, ledger)
    assert (file_names(found.new), found.loaded) == (["late.json"], len(loaded))


def test_files_of_an_attempt_that_lost_are_still_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    lost = plan(landing, ledger).new
    ledger.record_intent(intent_of("id", stream=ORDERS), lost)
    assert plan(landing, ledger).new == lost


def test_files_of_another_table_at_the_same_path_are_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    loaded = load(landing, ledger)
    assert plan(landing, ledger, table_id="another id").new == loaded


def test_a_loaded_file_with_a_new_time_is_not_loaded_again(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    path = deliver("a.json")
    loaded = load(landing, ledger)
    os.utime(path, ns=(1, 1))
    found = plan(landing, ledger)
    assert (file_names(found.new), found.loaded, file_names(found.seen)) == ([], len(loaded), ["a.json"])


def test_a_touched_file_is_read_once_and_its_earlier_contents_stay_known(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    path = deliver("a.json", "{}\n")
    load(landing, ledger)
    deliver("a.json", '{"order_id": "2"}\n')
    load(landing, ledger, 2, on_changed_file="append_new_version")
    deliver("a.json", "{}\n")
    for at in (1, 2):
        os.utime(path, ns=(at, at))
        found = plan(landing, ledger, on_changed_file="append_new_version")
        ledger.record_files(FileEvent.SEEN, "bronze.orders", "id", day(1), found.seen)
        assert (file_names(found.seen), found.new) == (["a.json"], ())
        again = plan(landing, ledger, read_file=lambda file: pytest.fail(f"{file.path} was read"))
        assert (again.loaded, again.seen, again.new) == (1, (), ())
    deliver("a.json", '{"order_id": "2"}\n')
    assert file_names(plan(landing, ledger, on_changed_file="replace").new) == ["a.json"], (
        "the table holds the other one"
    )


def test_the_same_content_under_a_new_name_is_a_new_file(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    load(landing, ledger)
    deliver("b.json")
    assert file_names(plan(landing, ledger).new) == ["b.json"]


def test_the_same_name_with_new_content_is_bad_input_that_names_both(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    deliver("a.json", '{"order_id": "1"}\n')
    (before,) = load(landing, ledger)
    deliver("a.json", '{"order_id": "other"}\n')
    deliver("new.json")
    with pytest.raises(BadInputError) as raised:
        plan(landing, ledger)
    message = str(raised.value)
    assert message.startswith("bronze.orders: orders/date=2013-01-01/a.json was loaded before with other content: ")
    assert f"18 bytes, sha256 {before.checksum[:12]}; now 22 bytes, sha256 " in message
    assert "Nothing was loaded" in message
    assert "under a new name" in message
    assert raised.value.exit_code is ExitCode.BAD_INPUT


def test_each_content_of_a_name_is_loaded_once_if_the_spec_appends_new_versions(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    appends = {"on_changed_file": "append_new_version"}
    for number, content in enumerate(("{ }", "{  }", "{ }"), start=1):
        deliver("a.json", content)
        deliver("b.json")
        expected = {1: ["a.json", "b.json"], 2: ["a.json"], 3: []}[number]
        assert file_names(load(landing, ledger, number, **appends)) == expected
        assert plan(landing, ledger, **appends).new == ()
    assert [(file.path[-6:], file.size) for file in loaded_contents(ledger, "bronze.orders", "id")] == [
        ("a.json", 3),
        ("b.json", 18),
        ("a.json", 4),
    ]


def test_a_changed_file_is_a_batch_of_its_own_if_it_replaces_its_rows(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    replaces = {"on_changed_file": "replace"}
    for number, content in enumerate(("{ }", "{  }", "{ }"), start=1):
        deliver("b.json", content)
        deliver(f"a{number}.json")
        found = plan(landing, ledger, **replaces)
        assert (file_names(found.new), found.replaces, found.later) == {
            1: (["a1.json", "b.json"], False, 0),
            2: (["b.json"], True, 1),
            3: (["b.json"], True, 1),
        }[number]
        load(landing, ledger, 2 * number, **replaces)
        assert file_names(load(landing, ledger, 2 * number + 1, **replaces)) == (
            [f"a{number}.json"] if number > 1 else []
        )
        assert plan(landing, ledger, **replaces).new == ()


def test_a_file_that_changed_since_it_was_loaded_cannot_be_counted_again(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    read_file = partial(inspect, landing=LocalLanding(str(landing)), spec=SPEC)
    path = deliver("a.json")
    loaded = load(landing, ledger)
    os.utime(path, ns=(1, 1))
    require_as_loaded(SPEC, loaded, LocalLanding(str(landing)), read_file)
    for change in (lambda: path.write_text("{}"), path.unlink):
        change()
        with pytest.raises(BadInputError, match=r"(?s)a\.json changed after a batch had loaded it.* \(18 bytes\) back"):
            require_as_loaded(SPEC, loaded, LocalLanding(str(landing)), read_file)


def test_new_content_of_the_same_size_is_noticed(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    for name in ("a.json", "b.json"):
        deliver(name, "{}  \n")
    load(landing, ledger)
    for name in ("a.json", "b.json"):
        os.utime(deliver(name, "{  }\n"), ns=(1, 1))
    with pytest.raises(BadInputError, match=r"a\.json \(and 1 more\) was loaded before with other content: 5 bytes"):
        plan(landing, ledger)


def test_a_loaded_file_may_be_deleted(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json").with_name("b.json").write_text("{}")
    loaded = load(landing, ledger)
    (landing / loaded[0].path).unlink()
    assert plan(landing, ledger) == FilePlan(loaded=len(loaded) - 1)


def test_a_batch_takes_at_most_the_files_that_the_spec_allows_and_reads_no_others(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    for name in ("a.json", "b.json", "c.json", "d.json", "e.json"):
        deliver(name, "PAR1" if name == "b.json" else "{}")
    read: list[str] = []

    def read_file(file: FileFact) -> FileFact:
        read.append(Path(file.path).name)
        return inspect(file, LocalLanding(str(landing)), SPEC)

    found = plan(landing, ledger, read_file=read_file, max_files_per_batch=2)
    assert (file_names(found.new), file_names(found.broken), found.later) == (["a.json", "c.json"], ["b.json"], 2)
    assert read == ["a.json", "b.json", "c.json"]


@pytest.mark.parametrize(
    ("most", "batches"),
    [(1, [["a"], ["b"], ["c"], ["d"]]), (4, [["a"], ["b"], ["c", "d"]]), ("5 B", [["a"], ["b"], ["c", "d"]])],
)
def test_a_batch_takes_at_most_the_bytes_that_the_spec_allows_but_at_least_one_file(
    landing: Path, deliver: Deliver, ledger: Ledger, most: int | str, batches: list[list[str]]
) -> None:
    for name, content in (("a", "{}  \n"), ("b", "{}  \n"), ("c", "{}"), ("d", "{}")):
        deliver(f"{name}.json", content)
    found = [
        file_names(load(landing, ledger, number, max_bytes_per_batch=most)) for number in range(1, len(batches) + 2)
    ]
    assert found == [*([f"{name}.json" for name in batch] for batch in batches), []]
    assert plan(landing, ledger, max_bytes_per_batch=most).later == 0


def test_a_file_younger_than_min_age_waits(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    settled, young, ahead = (deliver(f"{name}.json") for name in ("settled", "young", "ahead"))
    os.utime(settled, (0, time.time() - 61))
    os.utime(young, (0, time.time() - 30))
    os.utime(ahead, (0, time.time() + 3600))
    found = plan(landing, ledger, min_age="1 minutes")
    assert (file_names(found.new), file_names(found.unfinished)) == (["settled.json"], ["ahead.json", "young.json"])
    assert file_names(plan(landing, ledger).new) == ["ahead.json", "settled.json", "young.json"]


def test_a_file_that_changes_while_it_is_read_waits(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    files = {name: deliver(name) for name in ("goes.json", "grows.json", "whole.json")}

    def read_file(file: FileFact) -> FileFact:
        name = Path(file.path).name
        if name == "goes.json":
            files[name].unlink()
        found = inspect(file, LocalLanding(str(landing)), SPEC)
        if name == "grows.json":
            files[name].write_text('{"order_id": "1"}\n{"order')
        return found

    found = plan(landing, ledger, read_file=read_file, max_files_per_batch=1)
    assert (file_names(found.new), found.broken, found.later) == (["whole.json"], (), 0)
    assert file_names(found.unfinished) == ["goes.json", "grows.json"]


def test_planning_writes_nothing(landing: Path, deliver: Deliver, ledger: Ledger, tmp_path: Path) -> None:
    deliver("a.json")
    load(landing, ledger)
    deliver("b.json", "PAR1")
    before = file_contents(tmp_path)
    plan(landing, ledger)
    assert file_contents(tmp_path) == before

"""The landing files of a bronze batch: each content of a name is loaded once, and a broken file is given up."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest

from millrace.control.landing.ingest import FilePlan, not_as_loaded
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact
from millrace.errors import BadInputError, ExitCode, NotReadyError
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import file_contents
from tests.support.ledger.landing_feed import SPEC, Feed, file_names


@pytest.fixture
def feed(deliver: Deliver, ledger: Ledger) -> Feed:
    return Feed(deliver, ledger)


def test_files_are_new_until_a_winner_of_the_table_has_loaded_them(feed: Feed, tmp_path: Path) -> None:
    with pytest.raises(NotReadyError):
        feed.plan()
    feed.deliver("a.json")
    feed.deliver("b.json", '{"order_id": "2"}')
    feed.deliver("other day.json", number=2)
    first = feed.plan()
    assert (file_names(first.new), first.broken, first.loaded) == (["a.json", "b.json"], (), 0)
    assert all(len(file.checksum) == 64 for file in first.new)
    feed.attempt(first.new, ends_with=ValueError)
    assert feed.plan().new == first.new, "the attempt has not won"
    loaded = feed.load()
    assert feed.plan() == FilePlan(loaded=2)
    assert feed.plan(table_id="another id").new == loaded
    (feed.deliver.landing / loaded[0].path).unlink()
    feed.deliver("late.json")
    feed.deliver("same content.json", '{"order_id": "2"}')
    before = file_contents(tmp_path)
    late = feed.plan()
    assert (file_names(late.new), late.loaded) == (["late.json", "same content.json"], 1)
    assert file_contents(tmp_path) == before, "planning writes nothing"


def test_a_touched_file_is_read_once_and_its_earlier_contents_stay_known(feed: Feed) -> None:
    path = feed.deliver("a.json", "{}\n")
    feed.load()
    feed.deliver("a.json", '{"order_id": "2"}\n')
    feed.deliver("b.json")
    assert file_names(feed.load(2, on_changed_file="append_new_version")) == ["a.json", "b.json"]
    feed.deliver("a.json", "{}\n")
    for at in (1, 2):
        os.utime(path, ns=(at, at))
        found = feed.plan(on_changed_file="append_new_version")
        feed.record(FileEvent.SEEN, found.seen)
        assert (file_names(found.seen), found.new) == (["a.json"], ())
        again = feed.plan(read_file=lambda file: pytest.fail(f"{file.path} was read"))
        assert (again.loaded, again.seen, again.new) == (2, (), ())
    feed.deliver("a.json", '{"order_id": "2"}\n')
    assert file_names(feed.plan(on_changed_file="replace").new) == ["a.json"], "the table holds the other one"


def test_the_same_name_with_new_content_is_bad_input_that_names_both(feed: Feed) -> None:
    for name in ("a.json", "b.json"):
        feed.deliver(name, "{}  \n")
    before, _ = feed.load()
    os.utime(feed.deliver("a.json", "{  }\n"), ns=(1, 1))  # of the same size
    feed.deliver("new.json")
    with pytest.raises(BadInputError) as raised:
        feed.plan()
    message = str(raised.value)
    assert message.startswith("bronze.orders: orders/date=2013-01-01/a.json was loaded before with other content: ")
    assert f"5 bytes, sha256 {before.checksum[:12]}; now 5 bytes, sha256 " in message
    assert "Nothing was loaded" in message
    assert "under a new name" in message
    assert raised.value.exit_code is ExitCode.BAD_INPUT
    feed.deliver("b.json", '{"order_id": "other"}\n')
    with pytest.raises(BadInputError, match=r"a\.json \(and 1 more\) was loaded before with other content: 5 bytes"):
        feed.plan()


def test_a_changed_file_is_a_batch_of_its_own_if_it_replaces_its_rows(feed: Feed) -> None:
    replaces = {"on_changed_file": "replace"}
    for number, content in enumerate(("{ }", "{  }", "{ }"), start=1):
        feed.deliver("b.json", content)
        feed.deliver(f"a{number}.json")
        found = feed.plan(**replaces)
        assert (file_names(found.new), found.replaces, found.later) == {
            1: (["a1.json", "b.json"], False, 0),
            2: (["b.json"], True, 1),
            3: (["b.json"], True, 1),
        }[number]
        feed.load(2 * number, **replaces)
        assert file_names(feed.load(2 * number + 1, **replaces)) == ([f"a{number}.json"] if number > 1 else [])
        assert feed.plan(**replaces).new == ()


def test_a_file_that_changed_since_it_was_loaded_is_told_from_a_landing_that_is_not_there(feed: Feed) -> None:
    read_file = partial(inspect, landing=feed.place, spec=SPEC)
    path = feed.deliver("a.json")
    loaded = feed.load()
    os.utime(path, ns=(1, 1))
    assert not_as_loaded(SPEC, loaded, feed.place, read_file) == {}
    path.write_text("{}")
    [(name, cause)] = not_as_loaded(SPEC, loaded, feed.place, read_file).items()
    assert (Path(name).name, cause) == ("a.json", "has other content now")
    path.unlink()
    with pytest.raises(NotReadyError, match=r"has no file at all, .*\nSee whether its disk"):
        not_as_loaded(SPEC, loaded, feed.place, read_file)
    feed.deliver("b.json")
    assert list(not_as_loaded(SPEC, loaded, feed.place, read_file).values()) == ["is gone"]


def test_a_batch_takes_at_most_the_files_that_the_spec_allows_and_reads_no_others(feed: Feed) -> None:
    for name in ("a.json", "b.json", "c.json", "d.json", "e.json"):
        feed.deliver(name, "PAR1" if name == "b.json" else "{}")
    read: list[str] = []

    def read_file(file: FileFact) -> FileFact:
        read.append(Path(file.path).name)
        return inspect(file, feed.place, SPEC)

    found = feed.plan(read_file=read_file, max_files_per_batch=2)
    assert (file_names(found.new), file_names(found.broken), found.later) == (["a.json", "c.json"], ["b.json"], 2)
    assert read == ["a.json", "b.json", "c.json"]


@pytest.mark.parametrize(
    ("most", "batches"),
    [(1, [["a"], ["b"], ["c"], ["d"]]), (4, [["a"], ["b"], ["c", "d"]]), ("5 B", [["a"], ["b"], ["c", "d"]])],
)
def test_a_batch_takes_at_most_the_bytes_that_the_spec_allows_but_at_least_one_file(
    feed: Feed, most: int | str, batches: list[list[str]]
) -> None:
    for name, content in (("a", "{}  \n"), ("b", "{}  \n"), ("c", "{}"), ("d", "{}")):
        feed.deliver(f"{name}.json", content)
    found = [file_names(feed.load(number, max_bytes_per_batch=most)) for number in range(1, len(batches) + 2)]
    assert found == [*([f"{name}.json" for name in batch] for batch in batches), []]
    assert feed.plan(max_bytes_per_batch=most).later == 0


def test_a_file_younger_than_min_age_waits(feed: Feed) -> None:
    settled, young, ahead = (feed.deliver(f"{name}.json") for name in ("settled", "young", "ahead"))
    os.utime(settled, (0, time.time() - 61))
    os.utime(young, (0, time.time() - 30))
    os.utime(ahead, (0, time.time() + 3600))
    found = feed.plan(min_age="1 minutes")
    assert (file_names(found.new), file_names(found.unfinished)) == (["settled.json"], ["ahead.json", "young.json"])
    assert file_names(feed.plan().new) == ["ahead.json", "settled.json", "young.json"]


def test_a_file_that_changes_while_it_is_read_waits(feed: Feed) -> None:
    files = {name: feed.deliver(name) for name in ("goes.json", "grows.json", "whole.json")}

    def read_file(file: FileFact) -> FileFact:
        name = Path(file.path).name
        if name == "goes.json":
            files[name].unlink()
        found = inspect(file, feed.place, SPEC)
        if name == "grows.json":
            files[name].write_text('{"order_id": "1"}\n{"order')
        return found

    found = feed.plan(read_file=read_file, max_files_per_batch=1)
    assert (file_names(found.new), found.broken, found.later) == (["whole.json"], (), 0)
    assert file_names(found.unfinished) == ["goes.json", "grows.json"]


def test_a_broken_file_is_given_up_after_max_attempts_until_it_changes_or_is_replayed(feed: Feed) -> None:
    feed.deliver("broken.json", "PAR1")
    for number in (1, 2):
        found = feed.plan(max_attempts_per_file=2)
        assert (found.attempts, found.given_up) == ({found.broken[0].path: number}, ())
        feed.record(FileEvent.FAILED, found.broken)
    assert feed.plan(max_attempts_per_file=3).attempts == {found.broken[0].path: 3}

    third = feed.plan(read_file=lambda file: pytest.fail(f"{file.path} was read"), max_attempts_per_file=2)
    assert (file_names(third.given_up), third.broken, third.new) == (["broken.json"], (), ())

    os.utime(feed.deliver.landing / found.broken[0].path, ns=(1, 1))
    touched = feed.plan(max_attempts_per_file=2)
    assert (file_names(touched.given_up), touched.broken, touched.attempts) == (["broken.json"], (), {})
    feed.record(FileEvent.TOUCHED, touched.touched)
    again = feed.plan(read_file=lambda file: pytest.fail(f"{file.path} was read"), max_attempts_per_file=2)
    assert (file_names(again.given_up), again.touched) == (["broken.json"], ()), "it is read once"

    feed.record(FileEvent.REPLAYED, found.broken[:1])
    assert feed.plan(max_attempts_per_file=2).attempts == {found.broken[0].path: 1}
    for _ in range(2):
        feed.record(FileEvent.FAILED, found.broken)
    feed.deliver("broken.json", "{}\n")
    assert file_names(feed.plan(max_attempts_per_file=2).new) == ["broken.json"]


def test_a_file_that_the_disk_does_not_deliver_is_never_given_up_and_the_others_are_loaded(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalLanding, "name_defect", lambda *_: "")  # for links that stand for files
    unreachable = [feed.deliver(name) for name in ("b.json", "d.json")]
    for path in unreachable:
        path.unlink()
        path.symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO
    for name in ("a.json", "c.json", "e.json"):
        feed.deliver(name)
    for number in range(1, 5):
        found = feed.plan(max_attempts_per_file=2)
        assert file_names(found.unreachable) == ["b.json", "d.json"]
        assert "Input/output error" in found.unreachable[0].defect
        assert (found.broken, found.given_up, found.attempts, found.later) == ((), (), {}, 0)
        assert file_names(feed.load(number)) == (["a.json", "c.json", "e.json"] if number == 1 else [])
    unreachable[0].unlink()
    feed.deliver("b.json")
    assert file_names(feed.plan().new) == ["b.json"]


def test_a_store_that_delivers_none_of_three_files_is_not_asked_for_more(feed: Feed) -> None:
    for name in "abcde":
        feed.deliver(f"{name}.json")
    read: list[str] = []

    def read_file(file: FileFact) -> FileFact:
        read.append(Path(file.path).name)
        raise NotReadyError("no answer")

    with pytest.raises(NotReadyError, match="no answer"):
        feed.plan(read_file=read_file)
    assert read == ["a.json", "b.json", "c.json"]

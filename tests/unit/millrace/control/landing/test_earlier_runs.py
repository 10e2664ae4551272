"""The files of attempts that died: which are loaded alone, and which death counts as a failure of a file."""

from __future__ import annotations

import pytest

from millrace.control.landing import earlier_runs
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import Winner
from tests.support.deliveries import Deliver
from tests.support.ledger.landing_feed import SPEC, Feed, file_names


@pytest.fixture
def feed(deliver: Deliver, ledger: Ledger) -> Feed:
    return Feed(deliver, ledger)


def test_the_files_of_a_dead_attempt_are_loaded_after_all_others_in_batches_that_get_smaller(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_runs, "ONE_BY_ONE", 3)
    for name in "abcde":
        feed.deliver(f"{name}.json")
    feed.attempt(feed.plan().new)
    for name in ("a0.json", "z.json"):
        feed.deliver(name)
    assert file_names(feed.load(1)) == ["a0.json", "z.json"], "nothing died with them"
    assert file_names(feed.load(2)) == ["a.json", "b.json"], "the root of five"
    feed.attempt(feed.plan().new, 3)
    assert file_names(feed.load(3)) == ["e.json"], "its last attempt had five files, that of the others two"
    assert [file_names(feed.load(number)) for number in (4, 5, 6)] == [["c.json"], ["d.json"], []]


def test_only_a_death_that_a_file_met_alone_counts_and_only_once(feed: Feed) -> None:
    for name in ("a.json", "b.json", "c.json"):
        feed.deliver(name)
    feed.attempt(feed.plan().new)
    alone = feed.plan().new
    assert (file_names(alone), feed.ledger.failures(SPEC.table, "id")) == (["a.json"], {})
    for attempts in (1, 2):
        feed.attempt(alone)
        for _ in range(2):
            assert file_names(feed.plan().new) == ["b.json"], "the one that died alone comes last"
            [failure] = feed.ledger.failures(SPEC.table, "id").values()
            assert (failure.file.path, failure.attempts) == (alone[0].path, attempts)
        assert "died while it loaded this file alone, in the run run-1" in failure.file.defect
    assert file_names(feed.plan(max_attempts_per_file=2).given_up) == ["a.json"]
    feed.record(FileEvent.REPLAYED, alone)
    assert [file_names(feed.load(number)) for number in (1, 2, 3)] == [["b.json"], ["c.json"], ["a.json"]]


def test_an_attempt_whose_driver_lived_on_or_that_wrote_no_intent_is_not_dead(feed: Feed) -> None:
    for name in ("a.json", "b.json"):
        feed.deliver(name)
    new = feed.plan().new
    for files in (new, new[:1]):
        feed.attempt(files, ends_with=ValueError)
    feed.ledger._files.append([{**feed.ledger.file_events(SPEC.table, "id")[-1], "token": "no intent"}])
    assert feed.plan().new == new
    assert feed.ledger.failures(SPEC.table, "id") == {}


def test_a_file_stays_suspect_over_attempts_that_fail_until_it_is_loaded(feed: Feed) -> None:
    for name in ("a.json", "b.json"):
        feed.deliver(name)
    feed.attempt(feed.plan().new)
    feed.attempt(feed.plan().new)
    for _ in range(2):
        found = feed.plan()
        assert (file_names(found.new), found.later) == (["b.json"], 1)
        feed.attempt(found.new, ends_with=ValueError)
    assert [file_names(feed.load(number)) for number in (1, 2)] == [["b.json"], ["a.json"]]
    for name in ("a.json", "b.json"):
        feed.deliver(name, "{}\n")
    again = {"on_changed_file": "append_new_version"}
    assert file_names(feed.load(3, **again)) == ["a.json", "b.json"]


@pytest.mark.parametrize("how", ["append_new_version", "replace"])
def test_a_new_content_that_kills_stops_no_new_file(feed: Feed, how: str) -> None:
    for name in ("a.json", "b.json"):
        feed.deliver(name)
    feed.load(1, on_changed_file=how)
    for name in ("a.json", "b.json"):
        feed.deliver(name, "{}\n")
    for _ in range(2):
        feed.attempt(feed.plan(on_changed_file=how).new, 2)
    feed.deliver("c.json")
    loaded = [file_names(feed.load(number, on_changed_file=how)) for number in (2, 3, 4)]
    assert loaded == [["c.json"], ["b.json"], ["a.json"]]


def test_a_file_whose_attempt_commits_after_it_was_taken_for_dead_has_not_failed(feed: Feed) -> None:
    feed.deliver("a.json")
    attempt = feed.attempt(feed.plan().new)
    assert file_names(feed.plan().new) == ["a.json"]
    assert len(feed.ledger.failures(SPEC.table, "id")) == 1
    feed.ledger.record_committed([Winner(attempt, 1)])
    assert (feed.plan().loaded, feed.ledger.failures(SPEC.table, "id")) == (1, {})

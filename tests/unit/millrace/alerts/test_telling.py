"""Each cause is told once to each notifier: over failures, deaths, races, and causes that come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millrace.alerts.alert import Alert
from millrace.alerts.down_servers import DownServer
from millrace.alerts.open_alerts import OpenAlerts, tell_resolved
from millrace.alerts.telling import MOST_MESSAGES, Links, Told, tell
from millrace.alerts.told import CLAIM_FOR, ToldAlerts
from millrace.overview.attention import Attention, Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.paths import LakehousePaths
from tests.support.airflow.shown_lakehouse import EVIL, make_shown_lakehouse

NOW = datetime.now(UTC)
LINKS = Links(lambda table: f"https://airflow/lakehouse/tables/{table}", "https://airflow/lakehouse/tables")


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Attention]:
    """What needs a person in a lakehouse with hostile texts."""
    root = tmp_path_factory.mktemp("lake")
    make_shown_lakehouse(root / "tables", root / "specs")
    reader = LakehouseReader(LakehousePaths(root / "tables"), root / "specs")
    return attention_needed(reader.read(NOW, no_failed_tasks), NOW)


class Inbox:
    """A notifier that fails as often as a test wants."""

    def __init__(self, failures: int = 0) -> None:
        self.alerts: list[Alert] = []
        self.failures = failures

    def __call__(self, alert: Alert) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("cannot reach https://chat.example/s3cret")
        self.alerts.append(alert)

    @property
    def tables(self) -> list[str]:
        """The tables of the messages."""
        return [alert.table for alert in self.alerts]


Tell = Callable[..., Told]
Resolve = Callable[..., dict[str, Exception]]


@pytest.fixture
def run(tmp_path: Path) -> Tell:
    """Tell what is new."""

    def run(
        items: Sequence[Attention], later: timedelta = timedelta(), *, forget: bool = True, **inboxes: Inbox
    ) -> Told:
        paths = LakehousePaths(tmp_path)
        return tell(items, inboxes, ToldAlerts(paths), OpenAlerts(paths), NOW + later, LINKS, forget=forget)

    return run


@pytest.fixture
def resolve(tmp_path: Path) -> Resolve:
    """Tell what is gone."""

    def resolve(items: Sequence[Attention], later: timedelta = timedelta(), **inboxes: Inbox) -> dict[str, Exception]:
        return tell_resolved(items, inboxes, OpenAlerts(LakehousePaths(tmp_path)), NOW + later)

    return resolve


def test_each_kind_of_cause_is_told_once_with_cause_action_and_link(run: Tell, items: list[Attention]) -> None:
    mail = Inbox()
    for _ in range(3):
        run(items, mail=mail)
    kinds = {Trouble.WRONG_SPEC, Trouble.REFUSED, Trouble.APPROVAL, Trouble.STALE, Trouble.OLD_ROWS}
    assert {alert.kind for alert in mail.alerts} == {kind.value for kind in kinds}
    assert len(mail.alerts) == len(items) == len({alert.key for alert in mail.alerts})
    for alert, item in zip(mail.alerts, items, strict=True):
        assert alert.text.startswith(f"{item.table.table}: {item.kind.value}\n{item.cause}\nWhat helps: ")
        assert alert.text.endswith(f"\nhttps://airflow/lakehouse/tables/{item.table.table}")


def test_no_text_of_a_source_becomes_html_a_mention_or_a_second_line_of_a_subject(
    run: Tell, items: list[Attention]
) -> None:
    mail = Inbox()
    hostile = replace(items[0], cause=f"{EVIL} <!channel> {{{{ 7 * 7 }}}}", way_out=EVIL)
    run([hostile], mail=mail)
    [alert] = mail.alerts
    assert "<script" not in alert.html
    assert "&lt;script&gt;" in alert.html
    assert "<!channel>" not in alert.mrkdwn
    assert "\n" not in alert.title


def test_a_cause_that_changes_its_text_is_not_told_again_but_one_that_came_back_is(
    run: Tell, items: list[Attention]
) -> None:
    mail, stale = Inbox(), next(item for item in items if item.kind is Trouble.STALE)
    for now in ([stale], [replace(stale, cause="its newest row is older still")], [], [stale]):
        run(now, mail=mail)
    assert mail.tables == [stale.table.table] * 2
    mail.alerts.clear()
    for files in (("a.json",), ("a.json", "b.json"), ("b.json",), ("b.json", "a.json")):
        run([replace(items[0], kind=Trouble.GIVEN_UP, subjects=files)], mail=mail)
    assert len(mail.alerts) == 3, "a further file is a new cause, and a.json came back"


def test_only_the_notifier_that_failed_is_told_again(run: Tell, resolve: Resolve, items: list[Attention]) -> None:
    mail, chat = Inbox(), Inbox(failures=2)
    told = run(items[:2], mail=mail, chat=chat)
    assert list(told.failures) == ["chat"]
    for _ in range(2):
        assert not run(items[:2], mail=mail, chat=chat).failures
    assert (len(mail.alerts), len(chat.alerts)) == (2, 2)
    chat.failures = 1
    assert list(resolve([], mail=mail, chat=chat)) == ["chat"]
    for _ in range(2):
        assert resolve([], mail=mail, chat=chat) == {}
    assert (len(mail.alerts), len(chat.alerts)) == (4, 4)


def test_many_causes_at_once_are_one_message_and_told(run: Tell, items: list[Attention]) -> None:
    mail = Inbox()
    many = [replace(items[0], subjects=(str(number),)) for number in range(MOST_MESSAGES + 15)]
    for _ in range(2):
        run(many, mail=mail)
    [alert] = mail.alerts
    assert (alert.kind, alert.link) == ("several", LINKS.all_tables)
    assert "25 causes need a person:" in alert.text
    assert "and 5 more" in alert.text


def die(_: Alert) -> None:
    """A notifier during which its process dies."""
    raise KeyboardInterrupt


def test_a_process_that_dies_while_it_tells_is_followed_by_another_one(run: Tell, items: list[Attention]) -> None:
    mail = Inbox()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ToldAlerts, "settle", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            run(items[:1], mail=die)
    run(items[:1], CLAIM_FOR / 2, mail=mail)
    assert mail.alerts == [], "it may still be telling"
    run(items[:1], CLAIM_FOR, mail=mail)
    run(items[:1], 2 * CLAIM_FOR, mail=mail)
    assert len(mail.alerts) == 1


def test_a_process_that_dies_with_a_clock_a_day_ahead_holds_up_nobody(
    run: Tell, resolve: Resolve, items: list[Attention]
) -> None:
    mail = Inbox()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ToldAlerts, "settle", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            run(items[:1], timedelta(days=1), mail=die)
    run(items[:1], mail=mail)
    with pytest.raises(KeyboardInterrupt):
        resolve([], timedelta(days=1), mail=die)
    resolve([], mail=mail)
    assert [alert.is_resolved for alert in mail.alerts] == [False, True]


def test_processes_at_the_same_time_tell_once_that_a_cause_is_there_and_that_it_is_gone(
    run: Tell, resolve: Resolve, items: list[Attention]
) -> None:
    mail, pager = Inbox(), Inbox()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: run(items, forget=bool(number % 2), mail=mail), range(16)))
        list(pool.map(lambda _: resolve([], pager=pager), range(16)))
    assert sorted(mail.tables) == sorted(pager.tables) == sorted(item.table.table for item in items)


def test_a_damaged_object_tells_rather_twice_than_never(run: Tell, items: list[Attention], tmp_path: Path) -> None:
    mail = Inbox()
    run(items[:1], mail=mail)
    (tmp_path / "_millrace" / "alerts" / "told").write_text('{"bronze.or')
    run(items[:1], mail=mail)
    assert len(mail.alerts) == 2


def test_a_message_is_resolved_once_when_all_its_causes_are_gone(
    run: Tell, resolve: Resolve, items: list[Attention]
) -> None:
    pager = Inbox()
    files = replace(items[0], kind=Trouble.GIVEN_UP, subjects=("a.json", "b.json"))
    run([files], pager=pager)
    for now in ([files], [replace(files, subjects=("b.json",))], [], []):
        resolve(now, pager=pager)
    opened, closed = pager.alerts
    assert (opened.event_action, closed.event_action) == ("trigger", "resolve")
    assert (closed.key, closed.link) == (opened.key, opened.link)
    assert closed.text.startswith(f"Resolved: {opened.title}\nNobody has to do anything any more.")


def test_a_cause_that_comes_back_opens_its_message_again(run: Tell, resolve: Resolve, items: list[Attention]) -> None:
    pager, chat = Inbox(), Inbox(failures=1)
    for now in (items[:1], [], items[:1], []):
        run(now, pager=pager)
        resolve(now, pager=pager, chat=chat)
    assert [alert.event_action for alert in pager.alerts] == ["trigger", "resolve"] * 2
    assert [alert.event_action for alert in chat.alerts] == ["resolve"], "it was down the first time"


def test_a_wrong_spec_resolves_nothing_of_its_table(run: Tell, resolve: Resolve, items: list[Attention]) -> None:
    pager, refused = Inbox(), next(item for item in items if item.kind is Trouble.REFUSED)
    run([refused], mail=Inbox())
    resolve([replace(refused, kind=Trouble.WRONG_SPEC)], pager=pager)
    assert pager.alerts == []
    resolve([], pager=pager)
    assert pager.tables == [refused.table.table]


def test_a_server_that_is_down_is_told_without_a_table_and_resolved_when_it_runs(
    run: Tell, resolve: Resolve, items: list[Attention]
) -> None:
    mail = Inbox()
    down = DownServer(name="/srv/.home", restarts=10, since=NOW, again_at=NOW + timedelta(minutes=40), log="spark.log")
    for _ in range(2):
        run([down, items[0]], mail=mail)
    assert mail.tables == ["", items[0].table.table]
    [alert] = mail.alerts[:1]
    assert alert.text == (
        f"The lakehouse: no Spark server\n{down.cause}\n{down.way_out}\nhttps://airflow/lakehouse/tables"
    )
    resolve([items[0]], mail=mail)
    assert mail.alerts[-1].title == "Resolved: The lakehouse: no Spark server"

    run([down, *items] * 2, later=timedelta(minutes=1), more=(inbox := Inbox()))
    assert any(f"no Spark server: {down.cause}" in alert.cause for alert in inbox.alerts)

"""Orders of two shops in one silver table: a web shop, and a branch whose feed has other names; and what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from millrace.contracts.job.report import JobReport
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.errors import Outcome
from tests.support.documents.specs import Document, bronze_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse
from tests.support.restored import restore_any

WEB, BRANCH, SILVER = "bronze.orders", "bronze.branch_orders", "silver.orders"
FEEDS = {WEB: "orders", BRANCH: "branch_orders"}
KEYS, HOURS, DAYS = {WEB: range(9), BRANCH: range(3, 12)}, range(10), range(1, 3)
BY_SHOP = {"keys": ["shop", "order_id"], "partitioned_by": ["shop"]}
"""The keys of a silver table in which an order of one shop is never that of the other one."""


def two_shops(*, concurrent: bool = False, **changes: Any) -> list[Document]:
    """Return the specs of both bronze tables, and of the silver table that is merged from them, at once if asked."""
    web = {name: {"type": kind} for name, kind in (("order_id", "string"), ("amount", "int"), ("op", "string"))}
    branch = {name: {"type": kind} for name, kind in (("number", "int"), ("cents", "bigint"), ("gone", "boolean"))}
    of_time = {"event_at": {"type": "timestamp"}, "event_seq": {"type": "int"}}
    sources = [
        {"table": WEB},
        {
            "table": BRANCH,
            "columns": {"order_id": "concat('o', number)", "amount": "cents div 100"},
            "apply_as_deletes": "gone",
        },
    ]
    if concurrent:
        changes = {**BY_SHOP, "concurrent_by": "shop", **changes}
        sources = [{**source, "partitions": [source["table"]]} for source in sources]
    columns = {"order_id": {}, "amount": {"type": "int"}, **of_time, "shop": {"from": "_source_table"}}
    own = {"sources": sources, "columns": columns, "expectations": [AT_LEAST_0], "apply_as_deletes": "op = 'delete'"}
    silver = silver_document(**{"source": None, **own, **changes})
    silver = {key: value for key, value in silver.items() if value is not None}
    bronze = [bronze_document(table, columns=own | of_time) for table, own in ((WEB, web), (BRANCH, branch))]
    for document in bronze:
        document["source"]["on_changed_file"] = "replace"
    return [*bronze, silver]


@dataclass(frozen=True)
class ShopEvent:
    """An order, or the end of one, as a shop knows it.

    No two events have the same `seq`, and no two of one shop the same key and hour.
    """

    source: str
    key: int
    amount: int | None
    hour: int
    seq: int

    @property
    def row(self) -> dict[str, Any]:
        """The event as its shop delivers it."""
        at = {"event_at": f"2013-01-01T{self.hour:02d}:00:00Z", "event_seq": self.seq}
        if self.source == WEB:
            return {**at, "order_id": f"o{self.key}", "amount": self.amount, "op": None if self.is_state else "delete"}
        cents = None if self.amount is None else 100 * self.amount
        return {**at, "number": self.key, "cents": cents, "gone": not self.is_state}

    @property
    def is_state(self) -> bool:
        return self.amount is not None

    @property
    def is_refused(self) -> bool:
        return self.amount is not None and self.amount < 0

    def order(self, priority: str | None) -> tuple[int, ...]:
        """Return its place among the events of its key; the web shop is the first source."""
        is_first = int(self.source == WEB)
        return {"before_sequence": (is_first, self.hour), "after_sequence": (self.hour, is_first)}.get(
            priority or "", (self.hour, self.seq)
        )


@dataclass
class TwoShops:
    """A lakehouse of two shops that delivers, loads and merges, each in any order.

    Attributes:
        priority: `source_priority` of the silver table.
        by_shop: whether the silver table has the keys `BY_SHOP`.
        has_history: whether the silver table keeps every state of a key.
        landing: (source, day, name) of a landing file -> its events.
        loaded: the same of the files that bronze has loaded.
        loaded_at: (source, version) -> the same of the files that this version of the source has.
        done: step -> how often it was done.
        events: all events that the shops ever knew.
    """

    shop: Lakehouse
    chance: Random
    priority: str | None = None
    by_shop: bool = False
    has_history: bool = False
    landing: dict[tuple[str, int, str], list[ShopEvent]] = field(default_factory=dict)
    loaded: dict[tuple[str, int, str], list[ShopEvent]] = field(default_factory=dict)
    loaded_at: dict[tuple[str, int], dict[tuple[str, int, str], list[ShopEvent]]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    events: list[ShopEvent] = field(default_factory=list)

    def deliver(self) -> None:
        """Deliver a new file, with new events and some that came before, perhaps on another day."""
        source = self.chance.choice([WEB, BRANCH])
        earlier = [event for events in self.landing.values() for event in events if event.source == source]
        again = self.chance.sample(earlier, min(len(earlier), self.chance.randrange(3)))
        self._write((source, self.chance.choice(DAYS), f"{len(self.landing)}.json"), [*self._events(source), *again])

    def replace(self) -> None:
        """Deliver a file that bronze has loaded again, without some of its events."""
        if self.loaded:
            file = self.chance.choice(sorted(self.loaded))
            self._write(
                file, [*filter(lambda _: self.chance.random() < 0.5, self.landing[file]), *self._events(file[0])]
            )

    def load(self) -> None:
        """Load the files of a day of one shop that are not loaded, if there are any."""
        if late := [file for file, events in self.landing.items() if self.loaded.get(file) != events]:
            source, day, _ = self.chance.choice(sorted(late))
            self.shop.run_well(day, source)
            of_day = {file: events for file, events in self.landing.items() if file[:2] == (source, day)}
            self.done["replaced"] += any(file in self.loaded and self.loaded[file] != of_day[file] for file in of_day)
            self.loaded |= of_day
            self._note_version(source)

    def restore(self) -> None:
        """Restore a source, or silver, to any version; the next runs load and merge again what is undone."""
        table = self.chance.choice([WEB, BRANCH, SILVER])
        if not is_table(self.shop.paths.table(table)):
            return
        version = restore_any(self.shop, table, self.chance)
        if version is not None and table != SILVER:
            at = max(at for source, at in self.loaded_at if source == table and at <= version)
            others = {file: events for file, events in self.loaded.items() if file[0] != table}
            self.loaded = {**others, **self.loaded_at[table, at]}
            self._note_version(table)
        self.done["restored"] += version is not None

    def _note_version(self, source: str) -> None:
        of_source = {file: events for file, events in self.loaded.items() if file[0] == source}
        self.loaded_at[source, latest_version(self.shop.paths.table(source))] = of_source

    def load_all(self) -> None:
        """Load whatever is not loaded."""
        while self.loaded != self.landing:
            self.load()

    def merge(self, *, reprocess: bool = False) -> JobReport | None:
        """Merge what is loaded, for any day, and compare the table with what is right."""
        if {source for source, _, _ in self.loaded} != {WEB, BRANCH}:
            return None
        report = self.shop.run_well(self.chance.choice(DAYS), SILVER, reprocess=reprocess)
        assert self.shop.rows(SILVER, "order_id", "amount", "event_seq", "shop") == sorted(self.right_rows(), key=repr)
        refused = Counter(row["source"] for row in self.shop.quarantine(SILVER))
        assert refused == self.refused()
        self.done["refused"] += sum(refused.values())
        self.done[report.outcome] += 1
        if report.outcome is Outcome.COMMITTED:
            self.done["deleted"] += report.rows.deleted
        return report

    def right_rows(self) -> Iterator[tuple[str, int, int, str]]:
        """Yield the last state of each key over all events that bronze has, with history every state."""
        events = {event for of_file in self.loaded.values() for event in of_file if not event.is_refused}
        for event in events if self.has_history else last_events(events, self.priority, by_shop=self.by_shop):
            if event.amount is not None:
                yield f"o{event.key}", event.amount, event.seq, event.source

    def refused(self) -> Counter[str]:
        """Return `_source` -> the number of refused rows that bronze has."""
        return +Counter(
            {
                f"{source}: {FEEDS[source]}/date=2013-01-{day:02d}/{name}": sum(event.is_refused for event in events)
                for (source, day, name), events in self.loaded.items()
            }
        )

    def _events(self, source: str) -> Iterator[ShopEvent]:
        known = {(event.key, event.hour) for event in self.events if event.source == source}
        free = sorted({(key, hour) for key in KEYS[source] for hour in HOURS} - known)
        for key, hour in self.chance.sample(free, min(len(free), self.chance.randint(4, 20))):
            amount = self.chance.choice([None, None, None, -1, *range(5)])
            self.events.append(ShopEvent(source, key, amount, hour, len(self.events)))
            yield self.events[-1]

    def _write(self, file: tuple[str, int, str], events: list[ShopEvent]) -> None:
        source, day, name = file
        self.landing[file] = events
        self.shop.deliver(day, name, [event.row for event in events], feed=FEEDS[source])
        self.done["delivered"] += 1


def last_events(events: Iterable[ShopEvent], priority: str | None, *, by_shop: bool) -> Iterator[ShopEvent]:
    """Yield the last event of each key, which may be one of its shop alone."""
    last: dict[tuple[str, int], ShopEvent] = {}
    for event in events:
        key = event.source if by_shop else "", event.key
        last[key] = max(last.get(key, event), event, key=lambda each: each.order(priority))
    yield from last.values()

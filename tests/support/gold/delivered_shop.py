"""A lakehouse that Millrace's own jobs fill from landing files, which are compared with models in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.log.stored_tables import is_table
from millrace.errors import Outcome
from tests.support.gold.modelled_gold import COLUMNS, HOURLY, MOST, TABLES, Row, gold_documents, right_rows
from tests.support.lakehouse import Lakehouse
from tests.support.restored import restore_any
from tests.support.silver.orders import OrderRow, orders_document
from tests.support.silver.silver_models import DELETES, LastStates, differences

ORDERS, PRODUCTS = FEEDS = "orders", "products"
DAYS, HOURS, LAST_HOUR = range(1, 3), range(20), 23
OPTIONS = {**DELETES, "sequence_by": ["event_at", "event_seq"], "apply_as_truncates": "op = 'truncate'"}
Files = dict[tuple[int, str], tuple[OrderRow, ...]]
"""(day, name) of each landing file -> its lines."""

MORE = {"more": {"type": "int"}}
REFUSED = {"expect_table_row_count_to_be_between": {"max_value": 0}, "action": "fail"}
DELIVERIES = ("new", "update", "late", "again", "delete", "truncate", "replace", "change_products")
STEPS = (*DELIVERIES, "add_columns", "refuse", "reprocess", "restore", "rebuild")
"""All that can happen to the lakehouse, as methods of `DeliveredShop`."""

FATES = ("superseded", "unchanged", "quarantined", "deleted")
"""What may happen to rows in silver."""


def _models() -> dict[str, LastStates]:
    return {feed: LastStates(f"silver.{feed}", {**OPTIONS, "source": f"bronze.{feed}"}) for feed in FEEDS}


@dataclass
class DeliveredShop:
    """Orders and products from landing files to gold, delivered in any way.

    Attributes:
        join: how gold joins products to orders.
        landing: feed -> the lines of its landing files.
        loaded: the same of those that bronze has loaded.
        models: feed -> what its silver table must have.
        has_more: whether the specs have a further column in bronze and silver, and a further measure in gold.
        done: step, fate of a row, or gold table of which a part was computed -> how often it occurred.
        events: how many events there are.
        restored: the feeds whose bronze table was restored, and has to load files again.
    """

    lakehouse: Lakehouse
    random: Random
    join: str = "left"
    landing: dict[str, Files] = field(default_factory=lambda: {feed: {} for feed in FEEDS})
    loaded: dict[str, Files] = field(default_factory=lambda: {feed: {} for feed in FEEDS})
    models: dict[str, LastStates] = field(default_factory=_models)
    has_more: bool = False
    done: Counter[str] = field(default_factory=Counter)
    events: int = 0
    restored: set[str] = field(default_factory=set)

    def run(self, table: str, day: int = 1) -> JobReport:
        """Run a table's job to its end."""
        report = self.lakehouse.run(table, day)
        assert report.exit_code == 0, report.message
        return report

    def run_rebuild(self, table: str) -> None:
        """Rebuild a table and all that read it."""
        report = self.lakehouse.rebuild(table, downstream=True)
        assert report.exit_code == 0, report.message

    def do_all(self, steps: Sequence[str], rounds: int) -> None:
        """Do the steps in any order, and compare all tables after each round; the last change is a little one."""
        self.write_specs()
        self._deliver(PRODUCTS, *(self._event(product, note="x") for product in "abc"))
        self._deliver(ORDERS, *(self._event(f"o{number}") for number in range(16)))
        self.compare(self.load())
        steps = self.random.sample(steps, len(steps))
        for number in range(rounds):
            # These come last: a refused version must leave what the last round has compared.
            for step in sorted(steps[number::rounds], key=("restore", "rebuild").__contains__):
                getattr(self, step)()
                self.done[step] += 1
            self.compare(self.load())
            self.verify(self.random.choice(TABLES))
        self.change_little()
        computed = self.load()
        self.compare(computed)
        for table in TABLES:
            assert 0 < computed[table] < len(self.rows(table)), f"{table}: a little change computes a part"
            self.verify(table)

    def write_specs(self, **silver: Any) -> None:
        """Write all specs, with these keys of the silver table of orders."""
        for feed, model in self.models.items():
            bronze, document = orders_document(table=f"bronze.{feed}"), model.document()
            bronze["source"]["landing"] = feed
            if self.has_more:
                bronze["columns"], document["columns"] = bronze["columns"] | MORE, document["columns"] | MORE
            self.lakehouse.specs(bronze, document | (silver if feed == ORDERS else {}))
        self.lakehouse.specs(*gold_documents(self.join, MOST if self.has_more else {}))

    def new(self) -> None:
        """Deliver new orders, of which a rule may refuse some."""
        self._deliver(ORDERS, *(self._event(f"o{self.events}", self.random.choice((-1, 3, 8))) for _ in range(4)))

    def update(self) -> None:
        """Deliver later events of orders, which move them to another hour and product."""
        self._deliver(
            ORDERS, *(self._event(key, hour=min(self._hour(key) + 1, LAST_HOUR - 1)) for key in self._some_orders(3))
        )

    def late(self) -> None:
        """Deliver events that are older than the present rows, and a new order of the first hours."""
        older = [self._event(key, hour=max(self._hour(key) - 1, 0)) for key in self._some_orders(4)]
        self._deliver(ORDERS, *older, self._event(f"o{self.events}", hour=self.random.randrange(4)))

    def again(self) -> None:
        """Deliver events again that came before, in another file and perhaps on another day."""
        self._deliver(
            ORDERS, *self.random.sample([line for lines in self.loaded[ORDERS].values() for line in lines], 4)
        )

    def delete(self) -> None:
        """Delete orders."""
        self._deliver(ORDERS, *(self._event(key, hour=self._hour(key), op="delete") for key in self._some_orders(2)))

    def truncate(self) -> None:
        """Delete all orders of the first hours."""
        hours = sorted(hour for (hour, _), _ in self.models[ORDERS].rows.values())
        self._deliver(ORDERS, self._event(None, hour=hours[len(hours) // 4], op="truncate"))

    def replace(self) -> None:
        """Deliver a loaded file again, without some of its lines and with others."""
        files = {file: lines for file, lines in self.loaded[ORDERS].items() if len(lines) > 2}
        file = self.random.choice(sorted(files))
        kept = self.random.sample(files[file], len(files[file]) // 2)
        self._deliver(ORDERS, *kept, self._event(f"o{self.events}"), file=file)

    def change_products(self) -> None:
        """Deliver another price, another kind, or the end, of two products."""
        ops = (None, None, "delete")
        self._deliver(
            PRODUCTS,
            *(self._event(p, note=self.random.choice("xy"), op=self.random.choice(ops)) for p in "ab"),
        )

    def add_columns(self) -> None:
        """Let bronze, silver and gold have a further column."""
        self.has_more = True
        self.write_specs()

    def refuse(self) -> None:
        """Let a gate refuse what comes next, which restores silver; gold has the rows of before, whatever it ran."""
        self.new()
        self._load_bronze()
        self.write_specs(expectations=[REFUSED], on_refusal="restore")
        report = self.lakehouse.run("silver.orders")
        assert report.certified_version == (report.version or 0) + 1, report.message
        self.compare(self.run_gold())
        self.write_specs()

    def reprocess(self) -> None:
        """Let a gold table compute all its groups."""
        assert self.lakehouse.run(self.random.choice(TABLES), reprocess=True).outcome is Outcome.COMMITTED

    def rebuild(self) -> None:
        """Rebuild bronze or silver, and all that read it."""
        self.run_rebuild(self.random.choice(("bronze.orders", "silver.orders", "silver.products")))

    def restore(self) -> None:
        """Restore a table of each layer; its next run loads, merges or computes again what is undone."""
        for table in (f"bronze.{ORDERS}", f"silver.{self.random.choice(FEEDS)}", self.random.choice(TABLES)):
            if restore_any(self.lakehouse, table, self.random) is not None and table == f"bronze.{ORDERS}":
                self.restored.add(ORDERS)

    def change_little(self) -> None:
        """Deliver an order after all others, of a new product of a new kind."""
        self._deliver(PRODUCTS, self._event("d", 2, note="z"))
        self._deliver(ORDERS, self._event("last", 5, note="d", hour=LAST_HOUR))

    def load(self) -> dict[str, int]:
        """Run all tables; return how many rows each gold table has computed."""
        self._load_bronze()
        for feed, model in self.models.items():
            rows = self.run(f"silver.{feed}").rows
            if feed == ORDERS:
                self.done.update({fate: getattr(rows, fate) for fate in FATES})
            model.merge(self.loaded[feed])
        return self.run_gold()

    def run_gold(self) -> dict[str, int]:
        """Run the gold tables; return how many rows of each were computed."""
        before = {table: self._batches(table) for table in TABLES}
        for table in TABLES:
            self.run(table)
        return {table: sum(batch not in before[table] for batch in self._batches(table)) for table in TABLES}

    def _batches(self, table: str) -> list[int]:
        """Return the batch of each row of a table."""
        is_there = is_table(self.lakehouse.paths.table(table))
        return [batch for (batch,) in self.lakehouse.rows(table, "_batch_seq")] if is_there else []

    def compare(self, computed: dict[str, int]) -> None:
        """Compare silver and gold with their models, and count the gold tables of which a part was computed."""
        for feed, model in self.models.items():
            assert differences(model.stored_rows(self.lakehouse), model.rows) == {}, feed
        right = right_rows(self.models[ORDERS].rows, self.models[PRODUCTS].rows, self.join, has_most=self.has_more)
        for table in TABLES:
            assert self.rows(table) == right[table], table
            self.done[table] += 0 < computed[table] < len(right[table])

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a gold table, an hour as a number."""
        columns = (*COLUMNS[table], *(MOST if table == HOURLY and self.has_more else ()))
        rows = self.lakehouse.rows(table, *columns)
        return sorted((tuple(getattr(value, "hour", value) for value in row) for row in rows), key=repr)

    def verify(self, table: str) -> None:
        """Let Millrace compare a gold table with its sources."""
        report = self.lakehouse.run(table, job=Job.TABLE_VERIFY)
        assert (report.outcome, report.details["differing"]) == (Outcome.NO_OP, 0), report.message

    def _load_bronze(self) -> None:
        for feed in FEEDS:
            landing, loaded = self.landing[feed], self.loaded[feed]
            again = feed in self.restored
            for day in sorted(
                {day for (day, name), lines in landing.items() if again or loaded.get((day, name)) != lines}
            ):
                self.run(f"bronze.{feed}", day)
            self.restored.discard(feed)
            self.loaded[feed] = dict(landing)

    def _deliver(self, feed: str, *lines: OrderRow, file: tuple[int, str] | None = None) -> None:
        day, name = file or (self.random.choice(DAYS), f"{len(self.landing[feed])}.json")
        self.landing[feed][day, name] = lines
        self.lakehouse.deliver(day, name, [line.as_record() for line in lines], feed)

    def _event(
        self,
        key: str | None,
        amount: int | None = None,
        *,
        note: str = "",
        hour: int | None = None,
        op: str | None = None,
    ) -> OrderRow:
        """Return an event that no other is equal to in its sequence; without a value, it has a random one."""
        self.events += 1
        amount = self.random.choice((None, *range(9))) if amount is None else amount
        hour = self.random.choice(HOURS) if hour is None else hour
        return OrderRow(key, amount, note or self.random.choice((None, *"abc")), hour, self.events, op)

    def _some_orders(self, number: int) -> list[str]:
        return self.random.sample(sorted(self.models[ORDERS].rows), number)

    def _hour(self, key: str) -> int:
        """Return the hour of the present row of an order."""
        hour: int = self.models[ORDERS].rows[key][0][0]
        return hour

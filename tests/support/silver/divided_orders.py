"""Orders of Europe and of America in one silver table, which has a stream for each of these sources, or one stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millrace.catalog import load_catalog
from millrace.contracts.job.report import JobReport
from millrace.control.log.delta_log import latest_version
from millrace.control.planning.planner import Planner
from millrace.settings import Settings
from tests.support.documents.specs import Document, bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse
from tests.support.ledger.delta_tables import day
from tests.support.silver.source_reads import intents, require_read_once

EU, US, SILVER = "bronze.orders_eu", "bronze.orders_us", "silver.orders"
PARTITIONS = {EU: ("de", "fr"), US: ("us",)}

Partitions = Mapping[str, Sequence[str]]


def event(key: str, amount: int | None, hour: int = 0) -> dict[str, Any]:
    """Return an event of an order such as `us1`; without an amount its end."""
    at = {"event_at": f"2013-01-01T{hour:02d}:00:00Z", "event_seq": hour, "day": "2013-01-01"}
    return {**at, "country": key[:2], "order_id": key[2:], "amount": amount, "gone": amount is None}


@dataclass(frozen=True)
class DividedOrders:
    """A lakehouse of such orders. An order has the name of its country and its number, such as `us1`."""

    shop: Lakehouse

    def spec(self, partitions: Partitions | None = PARTITIONS, **silver: Any) -> None:
        """Write the specs; without partitions the table has one stream."""
        bronze = [bronze_document(table) for table in PARTITIONS]
        for document in bronze:
            document["source"]["on_changed_file"] = "replace"
            document["columns"] |= {"country": {"type": "string"}, "gone": {"type": "boolean"}}
        sources: list[Document] = [{"table": table} for table in PARTITIONS]
        if partitions:
            silver["concurrent_by"] = "country"
            sources = [{"table": table, "partitions": list(values)} for table, values in partitions.items()]
        own = {"keys": ["country", "order_id"], "partitioned_by": ["country"], "apply_as_deletes": "gone"}
        document = silver_document(**{**own, **silver}, sources=sources, expectations=[AT_LEAST_0])
        document["columns"] |= {"country": {"type": "string", "nullable": False}}
        del document["source"]
        self.shop.specs(*bronze, document)

    def load(self, source: str, number: int, *events: Mapping[str, Any]) -> None:
        """Load a file of a day; the job itself loads one that replaces an earlier one."""
        feed, name = source.partition(".")[2], "a.json"
        if not (self.shop.folder / "landing" / feed / f"date=2013-01-{number:02d}" / name).exists():
            given(self.shop, source, events, number, name)
            return
        self.shop.deliver(number, name, events, feed=feed)
        self.shop.run_well(number, source)

    def merge(self, number: int = 1, **more: Any) -> JobReport:
        """Run the silver table; afterwards nothing may be new."""
        report = self.shop.run_well(number, SILVER, **more)
        assert report.certified_version == latest_version(self.shop.paths.table(SILVER))
        root, landing, tables = self.shop.paths.root, f"{self.shop.folder / 'landing'}", self.shop.folder / "tables"
        catalog = load_catalog(tables)
        planner = Planner(catalog, Settings(root=root, landing=landing, tables=tables))
        assert planner.advise(catalog.spec(SILVER), day(number)).nothing_new
        return report

    def amounts(self) -> dict[str, int]:
        """Return order -> its amount; no order may be there twice."""
        rows = self.shop.rows(SILVER, "country", "order_id", "amount")
        assert len({row[:2] for row in rows}) == len(rows)
        return {f"{country}{number}": amount for country, number, amount in rows}

    def refused(self) -> list[str]:
        """Return the orders in quarantine."""
        records = (json.loads(row["record"]) for row in self.shop.quarantine(SILVER))
        return sorted(record["country"] + record["order_id"] for record in records)

    def batches(self) -> list[tuple[str, int]]:
        """Return stream and number of all batches, in the order of their commits."""
        return [(intent.stream, intent.batch_seq) for intent in intents(self.shop, SILVER)]

    def require_read_once(self) -> None:
        """Require that each row of both sources was read once."""
        require_read_once(self.shop, SILVER, PARTITIONS)

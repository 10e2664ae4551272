"""People are erased from a lakehouse while it runs: nothing of them is left, and everything of the others is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import ErasureRequest
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.erase.certificates import Erased, state_of
from millrace.erase.erasing import Erasure
from millrace.erase.finding import Findings, Part
from millrace.erase.subjects import Subjects
from millrace.errors import ExitCode, RepairError
from millrace.repair.restoring import asked_restore
from millrace.settings import Settings
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order
from tests.support.ledger.delta_tables import file_contents

BRONZE, ORDERS, BUYERS = "bronze.orders", "silver.orders", "silver.buyers"
TOTALS, DAYS = "gold.totals", "gold.revenue_daily"
TABLES = (BRONZE, ORDERS, BUYERS, TOTALS, DAYS)
PEOPLE = [f"customer-{number:04}" for number in range(8)]


def specs() -> Iterator[dict[str, Any]]:
    """Orders in bronze; the last state of each, all states of each buyer, figures by buyer and by day."""
    buyer = {"type": "string"}
    bronze, silver, days = bronze_document(), silver_document(apply_as_deletes="amount = 0"), gold_document()
    yield {**bronze, "columns": {**bronze["columns"], "buyer": buyer}, "subject_keys": {"buyer": "customer"}}
    silver["columns"]["buyer"] = buyer
    yield {**silver, "expectations": [AT_LEAST_0]}
    history = {"stored_as_scd_type": 2, "except_column_list": ["event_at", "event_seq"], "keys": ["buyer"]}
    columns = {**silver["columns"], "buyer": {**buyer, "nullable": False}}
    yield {**silver_document(BUYERS, apply_as_deletes="amount = 0", columns=columns), **history}
    yield days
    figures = {"orders": "count(*)", "total": "sum(o.amount)"}
    yield gold_document(
        TOTALS, group_by={"buyer": "o.buyer"}, refresh_by="buyer", refresh_from={"o": "buyer"}, measures=figures
    )


@pytest.fixture(scope="module")
def chance() -> Random:
    return Random(17)


@pytest.fixture
def shop(lakehouse: Lakehouse, chance: Random) -> Lakehouse:
    """Two days of random orders, the last of which is only in bronze."""
    lakehouse.specs(*specs())
    for number in (1, 2):
        lakehouse.deliver(number, f"{number}.json", list(orders(chance, number)))
        lakehouse.run_well(number, *(TABLES if number < 2 else (BRONZE,)))
    return lakehouse


def orders(chance: Random, number: int) -> Iterator[dict[str, Any]]:
    """Yield orders of a day: new ones and changes, some deleted, some refused, some with a field without a column."""
    for at, person in enumerate(chance.choices(PEOPLE, k=30)):
        more = {"note": f"for {person}"} if chance.random() < 0.2 else {}
        amount = chance.choice([*range(1, 50), 0, 0, 0, -1, -2, -3, -4])
        yield order(f"{person}-{chance.randrange(4)}", amount, seq=at, of_day=number, buyer=person, **more)


def erasure(shop: Lakehouse, people: Iterable[str], *, now: bool = False) -> Erasure:
    """Return the erasure of some people."""
    settings = Settings(root=shop.paths.root, landing=str(shop.folder / "landing"), tables=shop.folder / "tables")
    catalog = load_catalog(settings.tables)
    return Erasure(Subjects("customer", tuple(people)), "DSR-1", catalog, settings, OpsTables(settings.paths), now)


def erase(shop: Lakehouse, asked: Erasure, plan: str) -> Findings:
    """Erase people as the command does."""

    def erase_rows(request: ErasureRequest) -> None:
        file = request.save(shop.folder / "reports" / "erasure.json")
        report = shop.run(BRONZE, job=Job.SUBJECT_ERASURE, request=file)
        file.unlink()
        assert report.exit_code is ExitCode.OK, report.message

    return asked.execute(plan, "ann", "asked for it", "cli", erase_rows)


def rows_of_others(shop: Lakehouse, people: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of tables with keys, without those of some people."""
    columns = {BRONZE: ("buyer", "order_id", "amount"), ORDERS: ("buyer", "order_id", "amount")}
    columns |= {BUYERS: ("buyer", "amount", "__START_AT", "__END_AT"), TOTALS: ("buyer", "orders", "total")}
    rows = {table: shop.rows(table, *names) for table, names in columns.items()}
    return {table: [row for row in of_table if row[0] not in people] for table, of_table in rows.items()}


def days(shop: Lakehouse) -> list[tuple[Any, ...]]:
    """Return the figures by day of the orders that silver has."""
    counts, sums = Counter[date](), Counter[date]()
    for day, amount in shop.rows(ORDERS, "day", "amount"):
        counts[day] += 1
        sums[day] += amount
    return sorted((day, counts[day], sums[day]) for day in counts)


def naming(shop: Lakehouse, people: Iterable[str]) -> list[str]:
    """Return the files of the lakehouse whose bytes, or the values in them, name one of some people."""
    keys = [each.encode() for each in people]
    contents = file_contents(Path(str(shop.paths.root)))
    decoded = {
        name: repr(pq.read_table(BytesIO(content)).to_pylist()).encode()
        for name, content in contents.items()
        if content.startswith(b"PAR1")
    }
    return [name for name, content in contents.items() if any(key in content + decoded.get(name, b"") for key in keys)]


def test_people_are_erased_from_all_versions_of_all_tables_and_others_keep_all(shop: Lakehouse, chance: Random) -> None:
    gone = sorted(chance.sample(PEOPLE, 2))
    shop.run_well(2, *TABLES[1:])
    before, ops = rows_of_others(shop, gone), OpsTables(shop.paths)
    refused = [row["row_id"] for row in shop.quarantine(ORDERS) if not any(each in row["record"] for each in gone)]
    asked = erasure(shop, gone)
    plan = asked.plan().id

    left = erase(shop, asked, plan)

    of_tables = [place for place in left.places if not place.name.startswith("landing")]
    assert {place.part for place in of_tables} <= {Part.OLDER, Part.LOG}, of_tables
    assert rows_of_others(shop, gone) == before == rows_of_others(shop, ())
    assert [row["row_id"] for row in shop.quarantine(ORDERS)] == refused
    assert shop.rows(DAYS, "day", "orders", "revenue") == days(shop)
    versions = {table: latest_version(shop.paths.table(table)) for table in TABLES}
    assert {table: ops.erasures.in_table(table)[0].version for table in TABLES} == versions
    assert ops.erasures.is_done(plan)
    erase(shop, asked, plan)
    assert versions == {table: latest_version(shop.paths.table(table)) for table in TABLES}, "it was done already"
    for table in (ORDERS, TOTALS):
        target = asked_restore(table, "1", asked.catalog, shop.paths, no_reload=False)
        with pytest.raises(RepairError, match="before the erasure DSR-1, and would bring back"):
            target.plan(asked.catalog, ops)

    at_once = erasure(shop, gone, now=True)
    erase(shop, at_once, at_once.plan().id)

    assert naming(shop, gone) == []
    assert rows_of_others(shop, ()) == before
    for file in (shop.folder / "landing").rglob("*.json"):
        file.unlink()
    assert state_of(asked.find()) is Erased.EVERYWHERE

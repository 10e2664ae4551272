"""People are erased from a lakehouse while it runs: nothing of them is left, and everything of the others is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import ErasureRequest, RowFilter
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.erase.certificates import Erased, state_of
from millrace.erase.erasing import Erasure, Left
from millrace.erase.finding import Part
from millrace.erase.older_versions import delete_older_versions
from millrace.erase.subjects import Subjects
from millrace.errors import ExitCode, RepairError
from millrace.repair.restoring import asked_restore
from millrace.settings import Settings
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.killed_drivers.batches import assert_killed
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import commit_file, file_contents

BRONZE, ORDERS, BUYERS = "bronze.orders", "silver.orders", "silver.buyers"
TOTALS, DAYS = "gold.totals", "gold.revenue_daily"
TABLES = (BRONZE, ORDERS, BUYERS, TOTALS, DAYS)
PEOPLE = [f"customer-{number:04}" for number in range(8)]


def specs() -> Iterator[dict[str, Any]]:
    """Orders in bronze; the last state of each, all states of each buyer, figures by buyer and by day."""
    buyer = {"type": "string"}
    bronze, silver, days = bronze_document(), silver_document(apply_as_deletes="amount = 0"), gold_document()
    yield {
        **bronze,
        "columns": {**bronze["columns"], "buyer": buyer},
        "subject_keys": {"buyer": "customer"},
        "erase": {"landing_files": "rewrite"},
    }
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


def erasure(shop: Lakehouse, people: Iterable[str], *, kind: str = "customer", now: bool = False) -> Erasure:
    """Return the erasure of some people."""
    settings = Settings(root=shop.paths.root, landing=str(shop.folder / "landing"), tables=shop.folder / "tables")
    catalog = load_catalog(settings.tables)
    return Erasure(Subjects(kind, tuple(people)), "DSR-1", catalog, settings, OpsTables(settings.paths), now)


class KilledError(Exception):
    """The driver of an erasure was killed."""


def erase(shop: Lakehouse, asked: Erasure, plan: str, drivers: Drivers | None = None) -> Left:
    """Erase people as the command does; if there are drivers, by one that is killed after its first commit."""

    def erase_rows(request: ErasureRequest) -> None:
        if drivers:
            assert_killed(drivers.run(shop, BRONZE, dies=Step.COMMIT, job=Job.SUBJECT_ERASURE, request=request))
            raise KilledError
        file = request.save(shop.folder / "reports" / "request.json")
        report = shop.run(BRONZE, job=Job.SUBJECT_ERASURE, request=file)
        assert report.exit_code is ExitCode.OK, report.message
        assert not any(key in report.model_dump_json() for key in request.keys)

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


def test_people_are_erased_from_all_versions_of_all_tables_and_others_keep_all(
    shop: Lakehouse, drivers: Drivers, chance: Random, tmp_path: Path
) -> None:
    refused = {row.id: json.loads(row.record)["buyer"] for row in shop.waiting(ORDERS)}
    replayed, person = next(iter(refused.items()))
    shop.replay(ORDERS, rows=RowFilter(ids=(replayed,)), assign={"amount": "abs(amount)"})
    gone = {person, chance.choice([other for other in PEOPLE if other != person])}
    asked, ops = erasure(shop, sorted(gone)), OpsTables(shop.paths)
    plan = asked.plan().id
    others = copy_lakehouse(shop, tmp_path / "others")
    with pytest.raises(KilledError):
        erase(shop, asked, plan, drivers)

    left = erase(shop, asked, plan)

    assert {place.part for place in left.findings.places} == {Part.OLDER, Part.LOG}
    assert left.state is Erased.NEWEST
    assert_nothing_else_is_gone(shop, others, gone, 2)
    versions = {table: latest_version(shop.paths.table(table)) for table in TABLES}
    assert {table: ops.erasures.in_table(table)[0].version for table in TABLES} == versions
    commits = [commit_file(Path(str(shop.paths.table(table))), version) for table, version in versions.items()]
    assert not any(key in commit.read_text() for commit in commits for key in gone), "its condition has no key"
    erase(shop, asked, plan)
    assert versions == {table: latest_version(shop.paths.table(table)) for table in TABLES}, "it was done already"
    for table in (ORDERS, TOTALS):
        target = asked_restore(table, "1", asked.catalog, shop.paths, no_reload=False)
        with pytest.raises(RepairError, match="before the erasure DSR-1, and would bring back"):
            target.plan(asked.catalog, ops)

    late = [order(f"{each}-9", 7, of_day=3, buyer=each) for each in PEOPLE]
    for lakehouse in (shop, others):
        lakehouse.deliver(3, "late.json", [event for event in late if lakehouse is shop or event["buyer"] not in gone])
    shop.run_well(3, *TABLES)

    assert_nothing_else_is_gone(shop, others, gone, 3)
    for table in TABLES:
        [erased] = ops.erasures.in_table(table)
        delete_older_versions(asked.catalog.spec(table), erased, asked.catalog, ops, "cli")
    assert naming(shop, gone) == []
    (shop.folder / "landing/orders/date=2013-01-03/late.json").unlink()
    assert state_of(asked.find()) is Erased.EVERYWHERE


def assert_nothing_else_is_gone(shop: Lakehouse, others: Lakehouse, gone: set[str], number: int) -> None:
    """Compare the rows with those of a lakehouse in which nobody was erased, after its runs of a day."""
    others.run_well(number, *TABLES)
    assert rows_of_others(shop, ()) == rows_of_others(others, gone)
    assert shop.rows(DAYS, "day", "orders", "revenue") == days(shop)
    kept = [row["received"] for row in others.quarantine(ORDERS) if not any(each in row["record"] for each in gone)]
    assert sorted(row["received"] for row in shop.quarantine(ORDERS)) == sorted(kept)


def test_refused_rows_of_others_that_mention_somebody_stay_and_a_number_goes_that_a_cast_has_written_as_text(
    lakehouse: Lakehouse,
) -> None:
    bronze, silver = bronze_document(expectations=[AT_LEAST_0]), silver_document()
    bronze["columns"] |= {"buyer": {"type": "string"}, "phone": {"type": "decimal(12,2)"}}
    silver["columns"] |= {"phone_text": {"type": "string", "from": "cast(phone as string)"}}
    lakehouse.specs({**bronze, "subject_keys": {"buyer": "customer", "phone": "subscriber"}}, silver)
    buyers = ("ann@x.org", "mary.ann@x.org", "bob@x.org")
    refused = [order(buyer, -1, buyer=buyer, of="ann@x.org") for buyer in buyers]
    lakehouse.deliver(1, "a.json", [*refused, order("1", 5, buyer="bob@x.org", phone=18)])
    lakehouse.run_well(1, BRONZE, ORDERS)
    stored = DeltaTable(str(lakehouse.paths.table(ORDERS)))
    rows = [
        {**stored.to_pyarrow_table().to_pylist()[0], "order_id": text, "phone_text": text}
        for text in ("17.00", "17.10")
    ]
    write_deltalake(stored, pa.Table.from_pylist(rows, stored.to_pyarrow_table().schema), mode="append")

    for kind, key in (("customer", "ann@x.org"), ("subscriber", "17")):
        asked = erasure(lakehouse, [key], kind=kind)
        erase(lakehouse, asked, asked.plan().id)

    left = [json.loads(row["record"])["buyer"] for row in lakehouse.quarantine(BRONZE)]
    assert sorted(left) == ["bob@x.org", "mary.ann@x.org"]
    assert lakehouse.rows(ORDERS, "order_id", "phone_text") == [("17.10", "17.10"), ("o1", "18.00")]


def test_an_erasure_needs_no_second_approval_of_its_deletes_and_shows_no_key_of_them(lakehouse: Lakehouse) -> None:
    bronze, buyers = bronze_document(), silver_document(BUYERS, keys=["buyer"])
    bronze["columns"] |= {"buyer": {"type": "string"}}
    buyers["columns"] |= {"buyer": {"type": "string", "nullable": False}}
    lakehouse.specs({**bronze, "subject_keys": {"buyer": "customer"}}, {**buyers, "max_deleted_percent": 0})
    lakehouse.deliver(1, "a.json", [order(person, 5, buyer=person) for person in PEOPLE])
    lakehouse.run_well(1, BRONZE, BUYERS)

    asked = erasure(lakehouse, gone := PEOPLE[:3])
    erase(lakehouse, asked, asked.plan().id)

    assert [row[0] for row in lakehouse.rows(BUYERS, "buyer")] == PEOPLE[3:]
    told = [*lakehouse.reports[-1].notes, lakehouse.reports[-1].message]
    assert not any(person in text for person in gone for text in told), told
    assert not OpsTables(lakehouse.paths).deletes.pending_deletes(BUYERS)

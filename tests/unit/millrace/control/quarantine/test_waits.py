"""Which quarantined rows wait for another table, until when, and when a run has to look at them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import BatchSources, PinnedTable, StreamPosition, Winner
from millrace.control.quarantine.decisions import record_decision
from millrace.control.quarantine.events import Decision, RowEvent
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace.control.quarantine.waits import Wait, record_tried, rows_that_wait, rows_to_try, wait_note, wait_of
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.quarantine_rows import SEEN, quarantine, refused
from tests.support.silver.known_customers import CUSTOMERS, ORDERS, UNKNOWN, known_customer, shop_documents

CUSTOMER_1, CUSTOMER_2 = ({CUSTOMERS: PinnedTable(table_id="c", version=version)} for version in (1, 2))


def orders(**arguments: str) -> SilverSpec:
    """Return the spec of the orders that wait for their customers."""
    return SilverSpec.model_validate({**shop_documents(known_customer(**arguments))[-1], "domain": "shop"})


def row(*reasons: str) -> QuarantinedRow:
    return QuarantinedRow("r1", RowStatus.OPEN, reasons, "a.json", None, SEEN, 1, SEEN, SEEN)


def position(spec: SilverSpec, sources: BatchSources, seq: int = 1) -> StreamPosition:
    """Return the position after a batch with these sources."""
    intent = intent_of("id", seq, token=f"t{seq}", sources=sources, spec_hash=spec.spec_hash)
    return StreamPosition("id", seq, Winner(intent, seq))


def test_a_row_waits_as_long_as_its_rule_says_and_then_for_a_person() -> None:
    limited = orders(wait_at_most="7 days")
    until = SEEN + timedelta(days=7)
    assert wait_of(orders(), row(UNKNOWN), SEEN + timedelta(days=999)) == Wait((CUSTOMERS,))
    assert wait_of(limited, row(UNKNOWN), until - timedelta(seconds=1)) == Wait((CUSTOMERS,), until)
    assert str(Wait((CUSTOMERS,), until)) == "waits for silver.customers until 2026-01-08 00:00 UTC"
    assert wait_of(limited, row(UNKNOWN), until) is None


def test_a_row_that_also_needs_a_person_does_not_wait_by_itself() -> None:
    for changed in (
        row(UNKNOWN, "order_id is null"),
        row("order_id is null"),
        row(UNKNOWN.replace("customers", "customers2")),
        replace(row(UNKNOWN), is_decided=True),
        replace(row(UNKNOWN), status=RowStatus.FIXED),
        replace(row(UNKNOWN), status=RowStatus.DISCARDED),
    ):
        assert wait_of(orders(), changed, SEEN) is None, changed


def test_a_reason_counts_once_if_two_references_are_called_the_same() -> None:
    document = {**shop_documents()[-1], "domain": "shop"}
    rules = [known_customer(), known_customer(other_column="invoiced_to")]
    spec = SilverSpec.model_validate({**document, "expectations": rules})
    assert len({rule.rule for rule in spec.references}) == 1
    assert wait_of(spec, row(UNKNOWN), SEEN) == Wait((CUSTOMERS,))
    assert wait_of(spec, row(UNKNOWN, "order_id is null"), SEEN) is None


def test_rows_are_tried_when_the_other_table_the_spec_or_the_last_batch_says_that_they_may_pass(
    paths: LakehousePaths,
) -> None:
    spec = orders()
    quarantine(paths, ORDERS, refused(1, UNKNOWN), refused(2, "amount"), refused(3, UNKNOWN, "amount"))
    same = BatchSources(references=CUSTOMER_1)

    def tried(sources: BatchSources, pinned: dict[str, PinnedTable] = CUSTOMER_1, by: SilverSpec = spec) -> list[str]:
        return [row.id for row in rows_to_try(by, position(spec, sources), pinned, paths, SEEN)]

    assert [row.id for row in rows_that_wait(spec, StoredRows(ORDERS, paths), SEEN)] == ["r1"]
    assert wait_note(spec, paths, SEEN) == (
        "1 row of silver.orders waits for silver.customers, and will be replayed by itself",
    )
    assert tried(same) == []
    assert tried(same, CUSTOMER_2) == ["r1"]
    assert tried(same, by=orders(wait_at_most="3 days")) == ["r1"]
    assert tried(same.model_copy(update={"replay": "p"})) == ["r1"]
    assert tried(BatchSources()) == ["r1"], "a restore, a rebuild, or a spec without the rule pinned nothing"
    quarantine(paths, ORDERS, refused(4, UNKNOWN))
    assert wait_note(spec, paths, SEEN) == (
        "2 rows of silver.orders wait for silver.customers, and will be replayed by themselves",
    )
    record_tried(spec, position(spec, same), CUSTOMER_2, paths)
    assert tried(same, CUSTOMER_2) == []
    another = position(spec, same, seq=2)
    assert [row.id for row in rows_to_try(spec, another, CUSTOMER_2, paths, SEEN)] == ["r1", "r4"], "another batch came"


def test_a_row_that_somebody_reopened_waits_for_a_person(paths: LakehousePaths) -> None:
    spec = orders()
    quarantine(paths, ORDERS, refused(1, UNKNOWN))
    rows = rows_that_wait(spec, StoredRows(ORDERS, paths), SEEN)
    for event in (RowEvent.DISCARDED, RowEvent.REOPENED):
        record_decision(event, ORDERS, rows, Decision("ann", "so", "a run"), paths)
    assert rows_that_wait(spec, StoredRows(ORDERS, paths), SEEN) == []
    assert wait_note(spec, paths, SEEN) == ()
    assert rows_to_try(silver_spec(), position(spec, BatchSources()), {}, paths, SEEN) == []

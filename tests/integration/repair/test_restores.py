"""`lakehouse repair restore`: what it shows, what it does, and what it refuses, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, TableFeatures

from millrace.catalog import Catalog, load_catalog
from millrace.clock import utc_now
from millrace.contracts.job.requests import RebuildRequest
from millrace.contracts.restricted import NOTHING_RESTRICTED
from millrace.control.gates.gates import Gates
from millrace.control.landing.file_states import file_states
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.repairs import Repairs
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Repair, Winner
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.ops_tables import OpsTables
from millrace.control.repair import restoring
from millrace.control.repair.interrupted import interrupted_repairs
from millrace.errors import RepairError
from millrace.overview.attention import Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.reading.certified import certified
from millrace.repair.restore_plan import Downstream
from millrace.repair.restoring import RestoreRequest
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import clean_log

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """Three days of orders in silver, versions 1 to 3, and in bronze."""
    lakehouse = Lakehouse(tmp_path_factory.mktemp("filled"))
    lakehouse.specs(bronze_document(), silver_document(), gold_document())
    for number, rows in enumerate(([order(1, 1), order(2, 2)], [order(1, 10, of_day=2)], [order(3, 3, of_day=3)]), 1):
        given(lakehouse, BRONZE, rows, number)
        assert given(lakehouse, SILVER, rows, number).certified_version == number
    return lakehouse


@pytest.fixture
def shop(filled: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(filled, tmp_path / "shop")


def catalog_of(shop: Lakehouse) -> Catalog:
    return load_catalog(shop.folder / "tables")


def asked(shop: Lakehouse, version: int, table: str = SILVER, *, no_reload: bool = False) -> RestoreRequest:
    return RestoreRequest(catalog_of(shop).spec(table), version, no_reload, NOTHING_RESTRICTED)


def plan_id(shop: Lakehouse, request: RestoreRequest) -> str:
    return request.plan(catalog_of(shop), OpsTables(shop.paths)).id


def execute(shop: Lakehouse, request: RestoreRequest, shown: str) -> Winner:
    decided = Repair(id=shown, said_by="ann", why="a wrong delivery")
    leases = lakehouse_leases(shop.paths, "run", timedelta(seconds=5))
    return request.execute(decided, "run", catalog_of(shop), OpsTables(shop.paths), leases)


def amounts(shop: Lakehouse) -> dict[str, int]:
    return dict(
        certified(SILVER, shop.paths.root).arrow(columns=["order_id", "amount"]).to_pandas().to_numpy().tolist()
    )


def test_a_restore_does_what_it_has_shown_once_and_readers_get_the_rows(shop: Lakehouse) -> None:
    request = asked(shop, 1)
    plan = request.plan(catalog_of(shop), OpsTables(shop.paths))
    assert (plan.inserted, plan.updated, plan.deleted, plan.rows_now, plan.rows_after) == (0, 1, 1, 3, 2)
    assert plan.columns == {"amount": 1, "day": 1, "event_at": 1}
    assert plan.samples == (
        {"kind": "deleted", "key": {"order_id": "o3"}},
        {"kind": "updated", "key": {"order_id": "o1"}},
    )
    assert [(batch.batch_seq, batch.interval, batch.applied) for batch in plan.undone] == [
        (2, "2013-01-02", 1), (3, "2013-01-03", 1)
    ]  # fmt: skip
    assert (plan.certified, plan.downstream) == (3, (Downstream(GOLD),))
    assert latest_version(shop.paths.table(SILVER)) == 3, "nothing was written"

    winner = execute(shop, request, plan.id)

    assert amounts(shop) == {"o1": 1, "o2": 2}
    commit = read_commit(shop.paths.table(SILVER), winner.version)
    assert commit is not None
    assert (commit.version, commit.txns) == (4, {"millrace/silver.orders/main": 4})
    assert commit.metadata["sources"]["repair"] == {"id": plan.id, "said_by": "ann", "why": "a wrong delivery"}
    ops = OpsTables(shop.paths)
    decided = ops.repairs.decided(SILVER, plan.id)
    assert decided is not None
    assert (decided.repair.said_by, json.loads(decided.shown)["deleted"], ops.repairs.open([SILVER])) == ("ann", 1, [])
    assert execute(shop, request, plan.id).version == 4, "the same command again does nothing"
    back = asked(shop, 3)
    assert execute(shop, back, plan_id(shop, back)).version == 5
    assert amounts(shop) == {"o1": 10, "o2": 2, "o3": 3}, "the restore was undone"


def test_a_restore_is_refused_if_anything_has_changed_since_it_was_shown(shop: Lakehouse) -> None:
    request = asked(shop, 1)
    shown = plan_id(shop, request)
    given(shop, SILVER, [order(4, 4, of_day=4)], 4)
    with pytest.raises(RepairError, match="something else than what"):
        execute(shop, request, shown)
    with pytest.raises(RepairError, match="something else than what"):
        execute(shop, request, plan_id(shop, asked(shop, 2)))
    with pytest.raises(RepairError, match="why is it restored"):
        request.execute(
            Repair(id=shown, said_by="ann", why=" "),
            "run",
            catalog_of(shop),
            OpsTables(shop.paths),
            lakehouse_leases(shop.paths, "run", timedelta(seconds=5)),
        )
    assert latest_version(shop.paths.table(SILVER)) == 4


class DiedError(BaseException):
    """A driver that died."""


STEPS: tuple[tuple[Any, str, int], ...] = (
    (Repairs, "record", 1),
    (Ledger, "record_intent", 1),
    (restoring, "_restore", 1),
    (Ledger, "record_committed", 4),  # resolving the stream records nothing three times
    (Ledger, "record_rewound", 1),
    (Gates, "record", 1),
    (Ledger, "record_closed", 1),
    (Repairs, "record", 2),
)
"""The steps of a restore, in their order, each with the number of the call after which the driver dies."""


@pytest.mark.faults
def test_a_restore_that_died_at_any_step_is_ended_by_the_same_command(filled: Lakehouse, tmp_path: Path) -> None:
    for at, (owner, name, calls) in enumerate(STEPS):
        shop = copy_lakehouse(filled, tmp_path / f"shop{at}")
        request = asked(shop, 1, BRONZE)
        shown = plan_id(shop, request)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), calls))
            with pytest.raises(DiedError):
                execute(shop, request, shown)
        interrupted = interrupted_repairs([BRONZE, SILVER], OpsTables(shop.paths))
        command = f"lakehouse repair restore {BRONZE} --to 1 --execute {shown} --why ..."
        is_closed = (owner, name) == (Ledger, "record_closed") or calls == 2
        assert interrupted == [f"{BRONZE}: a restore that ann decided was interrupted; it goes on with: {command}"] * (
            not is_closed
        ), name
        reader = LakehouseReader(shop.paths, shop.folder / "tables")
        needed = attention_needed(reader.read(utc_now(), no_failed_tasks), utc_now())
        told = [(Trouble.INTERRUPTED, "a restore that ann decided was interrupted", True)] * (not is_closed)
        assert [(item.kind, item.cause, command in item.way_out) for item in needed[:1]] == told, name
        winner = execute(shop, request, shown)
        assert (winner.version, latest_version(shop.paths.table(BRONZE))) == (4, 4), name
        assert certified(BRONZE, shop.paths.root).version == 4, name
        assert OpsTables(shop.paths).repairs.open([BRONZE]) == [], name
        ledger = Ledger(shop.paths)
        assert ledger.closed_rows(winner) is not None, name
        loads = ledger.batches(BRONZE, winner.intent.table_id, -1)
        assert [load.batch_seq for load in loads] == [1, 4], name


def dying(function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return the function, whose driver dies after a number of calls, so that its lease becomes free."""
    left = iter(range(calls - 1))

    def die(*args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        if next(left, None) is None:
            raise DiedError
        return result

    return die


def test_what_cannot_be_restored_is_refused_with_what_would_help(shop: Lakehouse) -> None:
    def refusal(version: int, table: str = SILVER, **more: bool) -> str:
        with pytest.raises(RepairError) as caught:
            plan_id(shop, asked(shop, version, table, **more))
        return str(caught.value)

    path = shop.paths.table(SILVER)
    assert "has no version 7" in refusal(7)
    assert "version 3 is the newest already" in refusal(3)
    assert "only a bronze table can leave out" in refusal(1, no_reload=True)
    assert "version 0 was never certified" in refusal(0)
    assert "is version 1." in refusal(0)
    DeltaTable(str(path)).alter.set_table_properties({"owner": "ann"}, raise_if_not_exists=False)
    assert "has the rows of version 3 already" in refusal(3)
    DeltaTable(str(path)).alter.set_table_properties({"delta.appendOnly": "false"})
    [file] = {*DeltaTable(str(path), version=1).file_uris()} - {*DeltaTable(str(path)).file_uris()}
    Path(file).unlink()
    assert "deleted 1 file of version 1" in refusal(1)
    assert "is version 2." in refusal(1), "the nearest one that is whole"
    ops = OpsTables(shop.paths)
    rebuild = ops.rebuilds.start(SILVER, (SILVER, GOLD), ("a", "b"), RebuildRequest(), "run")
    assert f"a rebuild of {SILVER} is in progress" in refusal(2)
    del rebuild
    clean_log(shop.paths.table(BRONZE), below=3)
    assert "the log" in refusal(1, BRONZE)
    assert "No other version" in refusal(1, BRONZE)


def test_a_version_with_other_features_is_refused_and_the_nearest_with_the_same_named(shop: Lakehouse) -> None:
    path = shop.paths.table(SILVER)
    DeltaTable(str(path)).alter.add_feature(TableFeatures.CheckConstraints, allow_protocol_versions_increase=True)
    judged = given(shop, SILVER, [order(4, 4, of_day=4)], 4).version
    given(shop, SILVER, [order(5, 5, of_day=5)], 5)
    with pytest.raises(RepairError, match="the features of the table have changed since version 2") as caught:
        plan_id(shop, asked(shop, 2))
    assert str(caught.value).endswith(f"The nearest that is certified and whole is version {judged}.")


def test_a_table_with_streams_is_not_restored(shop: Lakehouse) -> None:
    request = asked(shop, 1, BRONZE)
    several = replace(request, spec=request.spec.model_copy(update={"concurrent_by": "interval"}))
    with pytest.raises(RepairError, match="concurrent_by cannot be repaired"):
        plan_id(shop, several)


def test_the_files_of_undone_batches_are_shown_and_loadable_again(shop: Lakehouse) -> None:
    ops = OpsTables(shop.paths)
    plan = asked(shop, 1, BRONZE).plan(catalog_of(shop), ops)
    assert len(plan.files) == 2
    assert [each.table for each in plan.downstream] == [SILVER, GOLD]
    assert not any(each.rebuild for each in plan.downstream)
    kept = asked(shop, 1, BRONZE, no_reload=True)
    winner = execute(shop, kept, plan_id(shop, kept))
    loaded = ops.ledger.loaded_files(BRONZE, winner.intent.table_id)
    assert {*loaded.last_of(plan.files)} == {*plan.files}
    assert statuses(shop) == [
        ("loaded", ""),
        *[("undone", "a restore has removed its rows, and it is not loaded again")] * 2,
    ]
    again = asked(shop, 3, BRONZE)
    execute(shop, again, plan_id(shop, again))
    assert statuses(shop) == [("loaded", "")] * 3, "they came back"
    undone = asked(shop, 1, BRONZE)
    execute(shop, undone, plan_id(shop, undone))
    assert Ledger(shop.paths).loaded_files(BRONZE, winner.intent.table_id).last_of(plan.files) == {}
    again_text = "a restore has removed its rows; the run of its interval loads it again"
    assert statuses(shop) == [("loaded", ""), *[("undone", again_text)] * 2]


def statuses(shop: Lakehouse) -> list[tuple[str, str]]:
    states = file_states(Ledger(shop.paths), BRONZE, table_id(shop.paths.table(BRONZE)))
    return [(state.status.value, state.reason) for state in states]

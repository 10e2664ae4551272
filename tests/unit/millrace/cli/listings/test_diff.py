"""`lakehouse diff`: how tables differ from their specs, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.ledger.spec_history import SpecHistory
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, bronze_spec, gold_document, write_specs
from tests.support.ledger.delta_tables import file_contents, load_batch

GOLD = "gold.revenue_daily"


def test_it_counts_the_values_that_an_earlier_version_made_of_what_did_not_fit(
    lakehouse: Lakehouse, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, path = bronze_spec(columns={"n": {"type": "double"}}), settings.root / "bronze" / "orders"
    with monkeypatch.context() as earlier:
        earlier.setattr(BronzeSpec, "converted_columns", ())
        last = load_batch(settings.root, spec)
        SpecHistory(LakehousePaths(settings.root)).record(spec, last.intent.table_id)
    rows = {
        "n": [1.0, float("inf")],
        "_batch_token": [last.token] * 2,
        "_interval_start": [last.intent.interval_start] * 2,
    }
    write_deltalake(str(path), pa.table(rows), mode="overwrite", schema_mode="overwrite")
    write_specs(settings.tables, bronze_document(columns={"n": {"type": "double"}}))
    output = " ".join(lakehouse("diff", "bronze.orders").stdout.split())
    assert "guessed values of n; n is infinite in 1 row. 1 interval with 2 rows follows the old spec: " in output


def test_it_names_the_effects_of_a_changed_spec_and_writes_nothing(lakehouse: Lakehouse, settings: Settings) -> None:
    root, tables = settings.root, settings.tables
    spec = load_catalog(tables).spec(GOLD)
    assert lakehouse("diff", GOLD).stdout == f"{GOLD}: not written yet\n"
    SpecHistory(LakehousePaths(root)).record(spec, load_batch(root, spec, rows=3).intent.table_id)
    assert lakehouse("diff", GOLD).stdout == f"{GOLD}: as the spec says\n"
    measures = {**gold_document()["measures"], "most": "max(o.amount)"}
    write_specs(tables, gold_document(measures=measures, group_by={"day": "date_add(o.day, 1)"}))
    lake = file_contents(root)
    answer = lakehouse("diff")
    assert answer.exit_code == 0
    output = " ".join(answer.stdout.split())
    assert f"{GOLD}: rebuild: group_by: " in output
    assert f"The way: lakehouse rebuild {GOLD}" in output
    assert f"{GOLD}: applied by the next run: measures.most: a new measure" in output
    assert file_contents(root) == lake

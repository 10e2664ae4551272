"""Properties are set by one commit that leaves protocol, columns and rows as they are, whoever commits meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from millrace.control.log.delta_log import commit_actions
from millrace.control.log.property_commits import set_properties
from millrace.errors import MillraceError
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import append, create_table_of


def test_properties_are_set_and_nothing_else_changes_though_others_commit(tmp_path: Path) -> None:
    path, writers = tmp_path / "orders", 4
    create_table_of(silver_spec(description="Orders"), path)
    before, rows = DeltaTable(str(path)), append(path)

    with ThreadPoolExecutor(writers) as pool:
        done = [pool.submit(set_properties, path, {f"shop.{n}": str(n)}, "") for n in range(writers)]
    assert [each.result() for each in done] == [None] * writers

    after = DeltaTable(str(path))
    stored, was = after.metadata(), before.metadata()
    assert after.version() == rows + writers, "each commit has a version of its own"
    assert stored.configuration == {**was.configuration, **{f"shop.{n}": str(n) for n in range(writers)}}
    assert (stored.id, stored.description, stored.created_time) == (was.id, "Orders", was.created_time)
    assert (after.protocol().min_reader_version, after.schema()) == (1, before.schema())
    assert {*after.protocol().writer_features} == {"appendOnly", "changeDataFeed", "invariants"}
    assert after.to_pyarrow_table().num_rows == 1
    for version in range(rows + 1, after.version() + 1):
        assert [kind for action in commit_actions(path, version) for kind in action] == ["commitInfo", "metaData"]


def test_a_table_whose_features_ask_more_of_a_commit_is_left_as_it_is(tmp_path: Path) -> None:
    create_table_of(silver_spec(), tmp_path)
    alter = DeltaTable(str(tmp_path)).alter
    alter.add_feature(TableFeatures.DomainMetadata, allow_protocol_versions_increase=True)
    with pytest.raises(MillraceError, match=r"since it has features: domainMetadata\nSet them with Spark .*: a = b"):
        set_properties(tmp_path, {"a": "b"}, "")
    assert DeltaTable(str(tmp_path)).version() == 1

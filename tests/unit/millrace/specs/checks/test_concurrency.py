"""The tables that several runs may write at the same time: bronze by interval, silver by source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import only_problem, problems_of, rule
from tests.support.documents.specs import Document, bronze_document, silver_document, write_specs

FIRST = "sources[0].partitions[0]"
FOLDER = {"landing": "orders", "format": "json"}
KAFKA = {"kafka": "main", "topics": ["orders"], "format": "json"}
EU, US = "bronze.orders_eu", "bronze.orders_us"
EXIST, RECONCILE = "expect_column_values_to_exist_in_other_table", "expect_table_to_reconcile_with_source"
WAITS = rule(EXIST, column="order_id", other_table="silver.known", other_column="order_id")
SAME = rule(RECONCILE, "fail", source=EU, measure="count(*)", source_measure="count(*)")
TOMBSTONES = {"apply_as_deletes": "amount < 0", "maintenance": {"tombstones": {"retain": "3 days"}}}
TYPES = {"country": "string", "order_id": "string", "amount": "int", "day": "date", "event_at": "timestamp"}


def shared(eu: Any = ("de", "fr"), us: Any = ("us",), **changes: Any) -> list[Document]:
    """Return the specs of two bronze tables, and of a silver table that shares out these countries between them."""
    columns = with_type("string")
    own = {
        "source": None,
        "sources": [{"table": EU, "partitions": list(eu)}, {"table": US, "partitions": list(us)}],
        "columns": columns,
        "keys": ["country", "order_id"],
        "sequence_by": ["event_at"],
        "partitioned_by": ["country"],
        "concurrent_by": "country",
    }
    silver = {key: value for key, value in silver_document(**{**own, **changes}).items() if value is not None}
    return [bronze_document(EU, columns=columns), bronze_document(US, columns=columns), silver]


def with_type(kind: str) -> dict[str, Any]:
    """Return the columns of the tables, with this type of their country."""
    return {name: {"type": kind if name == "country" else known} for name, known in TYPES.items()}


@pytest.mark.parametrize("path", ["date={interval_start:%Y-%m-%d}", "{interval_start.year}/{interval_start.month:02d}"])
def test_each_interval_may_have_a_stream_if_it_has_a_folder(tmp_path: Path, path: str) -> None:
    document = bronze_document(source={**FOLDER, "path": path}, concurrent_by="interval")
    assert problems_of(write_specs(tmp_path, document, silver_document())) == ()


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ({**FOLDER, "path": "."}, "give each interval its own folder: path: date={interval_start:%Y-%m-%d}"),
        ({**FOLDER, "path": "{interval_end:%Y-%m-%d}"}, "give each interval its own folder"),
        ({**FOLDER, "path": "{interval_start:%Y-%m-%d}_{interval_end:%d}"}, "name the folder by interval_start alone"),
        (KAFKA, "leave it out: the messages of a topic have no interval"),
    ],
)
def test_a_file_of_several_intervals_allows_one_stream_only(tmp_path: Path, source: Document, fix: str) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(source=source, concurrent_by="interval")))
    assert (problem.key, problem.value) == ("concurrent_by", "interval")
    assert "could be loaded by the runs of several intervals" in problem.message
    assert problem.fix.startswith(fix)


def test_rules_on_one_run_need_a_certificate_of_its_own(tmp_path: Path) -> None:
    rules = rule("expect_table_to_be_fresh", "fail", column="event_at", max_age="1 days")
    rules += rule("expect_table_row_count_to_be_near_median", "fail", rows="applied", of_last=7, min_percent=50)
    fixes = {
        "expectations[0].expect_table_to_be_fresh": "write as_of: commit",
        "expectations[1].expect_table_row_count_to_be_near_median.rows": "write rows: in_table",
    }
    assert problems_of(write_specs(tmp_path / "one", bronze_document(expectations=rules))) == ()
    of_bronze, of_silver = [bronze_document(expectations=rules, concurrent_by="interval")], shared(expectations=rules)
    for folder, documents in (("bronze", of_bronze), ("silver", of_silver)):
        problems = problems_of(write_specs(tmp_path / folder, *documents))
        assert [problem.key for problem in problems] == list(fixes)
        assert all(problem.fix.startswith(fixes[problem.key]) for problem in problems)


def test_full_snapshots_need_a_source_with_one_order(tmp_path: Path) -> None:
    silver = silver_document(snapshot="full", sequence_by=[])
    problem = only_problem(write_specs(tmp_path, bronze_document(concurrent_by="interval"), silver))
    assert (problem.key, problem.fix) == ("snapshot", "remove concurrent_by from the spec of bronze.orders")


@pytest.mark.parametrize(
    "documents",
    [
        shared(["de"], ["no", "DE", " de"]),
        shared([1, -(2**31)], [2**31 - 1], columns=with_type("int")),
        shared([2**63 - 1], [0], columns=with_type("bigint")),
        shared(stored_as_scd_type=2, ignore_null_updates=True, apply_as_deletes="amount < 0"),
        shared(expectations=rule("expect_table_to_be_fresh", "fail", column="day", max_age="1 days", as_of="commit")),
        shared(sources=[{"table": EU, "partitions": ["de"]}]),
    ],
)
def test_each_source_may_have_a_stream_if_it_has_keys_of_its_own(tmp_path: Path, documents: list[Document]) -> None:
    assert problems_of(write_specs(tmp_path, *documents)) == ()


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"concurrent_by": "contry"}, "concurrent_by", "the table has no such column", "did you mean 'country'?"),
        ({"keys": ["order_id"]}, "concurrent_by", "to which source a key belongs", "add it to keys"),
        ({"partitioned_by": ["day"]}, "concurrent_by", "which files a merge can touch", "add it to partitioned_by"),
        ({"sources": None, "source": EU}, "concurrent_by", "this table has only one", "write sources, each with"),
        ({"columns": with_type("date")}, "concurrent_by", "this column is date", "string, tinyint, smallint, int"),
        ({"snapshot": "full", "sequence_by": []}, "snapshot", "delete the keys of the others", "leave out snapshot"),
        ({"source_priority": "after_sequence"}, "source_priority", "no two sources have the same key", "leave it out"),
        ({"on_refusal": "restore"}, "on_refusal", "may lack batches of a run", "write keep"),
        (TOMBSTONES, "maintenance.tombstones.retain", "each source numbers its batches", "leave it out"),
        ({"expectations": WAITS}, "expectations[0].action", "rows that wait are tried again", "use `action: warn`"),
        ({"expectations": SAME}, f"expectations[0].{RECONCILE}", "what one batch has read", "leave the rule out"),
    ],
)
def test_what_concerns_the_rows_of_several_sources_allows_one_stream_only(
    tmp_path: Path, changes: Document, key: str, message: str, fix: str
) -> None:
    known = silver_document("silver.known", source=EU, columns=with_type("string"), sequence_by=["event_at"])
    problem = only_problem(write_specs(tmp_path, *shared(**changes), known))
    assert problem.key == key
    assert message in problem.message
    assert fix in problem.fix


def test_the_shared_column_is_stored(tmp_path: Path) -> None:
    problems = problems_of(write_specs(tmp_path, *shared(except_column_list=["country"])))
    assert {problem.key for problem in problems} == {"except_column_list[0]", "partitioned_by[0]"}


@pytest.mark.parametrize(
    ("documents", "key", "value", "message", "fix"),
    [
        (shared([]), "sources[0].partitions", EU, "the source delivers no country", "list its values of country"),
        (shared(sources=[{"table": EU}]), "sources[0]", EU, "the source delivers no country", "partitions: [...]"),
        (shared(["de", "us"]), "sources[1].partitions[0]", "us", f"{EU} delivers this country already", "leave it out"),
        (shared([""]), FIRST, "", "Delta stores an empty text as null", "leave it out"),
        (shared([49]), FIRST, 49, "this is compared with texts", 'in quotes: "49"'),
        (shared(["49"], [1], columns=with_type("smallint")), FIRST, "49", "with whole numbers", "without quotes"),
        (shared([128, -128], [127], columns=with_type("tinyint")), FIRST, 128, "no tinyint has this value", "bigint"),
        (shared([1.5]), FIRST, 1.5, "a text or a whole number is needed here", ""),
        (shared([True]), FIRST, True, "a text or a whole number is needed here", ""),
        (shared(concurrent_by=None, sources=[{"table": EU, "partitions": ["de"]}]), "sources[0].partitions", ["de"],
         "only a table with concurrent_by shares out partitions", "write concurrent_by: <column>"),
    ],
)  # fmt: skip
def test_no_value_is_shared_out_that_two_sources_deliver_or_none(
    tmp_path: Path, documents: list[Document], key: str, value: object, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, *documents))
    assert (problem.key, problem.value) == (key, value)
    assert message in problem.message
    assert fix in problem.fix

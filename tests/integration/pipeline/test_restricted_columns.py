"""A restricted column from landing files to gold: no report, log, event, question or page has one of its values."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.job.args import CheckedVersion, DataDocsArgs, Job
from millrace.contracts.job.requests import QuarantineRequest
from millrace.control.ops_tables import OpsTables
from millrace.errors import Outcome
from millrace.overview.attention import Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.overview.lineage.restricted import Restrictions
from millrace.overview.quarantine import ShownRows
from millrace_spark.jobs.data_docs import build
from millrace_spark.runtime.entrypoint import silence_loggers_of_values
from tests.support.lakehouse import Lakehouse
from tests.support.rights import open_to_others

BRONZE, SILVER, REGISTER, GOLD = "bronze.people", "silver.people", "silver.register", "gold.cities"
HIDDEN = "Quimby"
SHOWN = "Lisbon"
RESTRICTED = {"type": "string", "classification": "restricted"}

BRONZE_SPEC: dict[str, Any] = {
    "table": BRONZE,
    "source": {"landing": "people", "files": "*.json", "format": "json"},
    "columns": {"city": {"type": "int"}, "name": RESTRICTED, "age": {"type": "int", "classification": "restricted"}}
    | {"place": {"type": "string"}, "seq": {"type": "int"}, "grade": {"type": "string"}}
    | {"friends": {"type": "map<string,int>", "classification": "restricted"}},
}
SILVER_SPEC: dict[str, Any] = {
    "table": SILVER,
    "source": BRONZE,
    "keys": ["name"],
    "sequence_by": ["seq"],
    "columns": {"name": {}, "place": {}, "seq": {"type": "int"}, "number": {"type": "int", "from": "grade"}}
    | {"digits": {"type": "int", "from": "right(name, 2)"}},
    "expectations": [
        {"expect_column_values_to_be_in_set": {"column": "name", "value_set": ["x"]}, "action": "fail"},
        {"expect_column_values_to_be_in_set": {"column": "place", "value_set": ["x"]}, "action": "fail"},
        {"expect_column_most_common_value_to_be_in_set": {"column": "name", "value_set": ["x"]}, "action": "warn"},
        {"expect_compound_columns_to_be_unique": {"column_list": ["place", "name"]}, "action": "warn"},
        {"expect_sql": "cast(name AS int) > 0", "action": "warn"},
    ],
}
REGISTER_SPEC: dict[str, Any] = {
    "table": REGISTER,
    "source": BRONZE,
    "keys": ["name"],
    "snapshot": "full",
    "max_deleted_percent": 0,
    "columns": {"name": {}, "place": {}},
}
STRICT_SPEC: dict[str, Any] = {**BRONZE_SPEC, "table": "bronze.strict", "on_drift": "fail"}
BROKEN_SPEC: dict[str, Any] = {
    **REGISTER_SPEC,
    "table": "silver.broken",
    "columns": {"name": {}, "number": {"type": "int", "from": "cast(name AS int)"}},
}

SPECS = (BRONZE_SPEC, STRICT_SPEC, SILVER_SPEC, REGISTER_SPEC, BROKEN_SPEC)
LAKEHOUSE = Path(sys.executable).parent / "lakehouse"


def person(number: int, **more: Any) -> dict[str, Any]:
    return {"city": 1, "name": f"{HIDDEN} {number}", "age": 40, "place": SHOWN, "seq": 1, "grade": "1", **more}


FIRST = [
    person(10),
    person(11, place="Porto"),
    person(11),  # ties with the one before
    person(12, age=f"{HIDDEN} old", friends={HIDDEN: "many"}),  # values that do not fit their restricted columns
    person(13, city=SHOWN),  # a value that does not fit a column for everybody
    person(14, nickname=f"{HIDDEN} the mayor"),  # a field without a column
    person(15, grade=f"{SHOWN} 1"),  # refused in silver for a value of everybody's
    person(16, name=f"{HIDDEN} no digits"),  # refused in silver for a value that comes from a restricted column
    f'{{"name": "{HIDDEN} cut off',
]


@pytest.fixture
def people(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.specs(*SPECS)
    lakehouse.deliver(1, "1.json", FIRST, feed="people")
    return lakehouse


def text_of(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_text(encoding="utf-8", errors="replace")


def test_no_report_question_page_or_log_has_a_value_of_a_restricted_column(
    people: Lakehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    silence_loggers_of_values()  # as in a driver
    bronze = people.run(BRONZE)
    assert bronze.rows.quarantined == 1
    samples = {each.field: each.samples for each in bronze.findings.rescued}
    assert samples == dict.fromkeys(("age", "city", "friends[]", "nickname"), ("(restricted)",))

    silver = people.run(SILVER)
    assert silver.findings.ties.samples == ('name=(restricted) at {"seq":1}',)
    reasons = {each.reason for each in silver.findings.refused}
    assert reasons == {f"value does not fit its type: {name} is no int" for name in ("number", "digits")}
    gate = people.run(SILVER, job=Job.QUALITY_GATE)
    assert gate.outcome is Outcome.GATE_FAILED
    names, places, common, _, error = gate.checks
    assert (names.unexpected_rows, names.samples, common.observed) == (5, ("(restricted)",), "(restricted)")
    assert SHOWN in places.samples
    assert error.error.endswith("(restricted)")

    people.run_well(1, REGISTER)
    people.deliver(2, "2.json", [person(20)], feed="people")
    people.run(BRONZE, 2)
    asked = people.run(REGISTER, 2)
    assert asked.outcome is Outcome.DELETES_REFUSED
    ops = OpsTables(people.paths)
    [deletes] = ops.deletes.pending_deletes(REGISTER)
    assert deletes.samples == ("name=(restricted)",) * 3

    broken = people.run("silver.broken")
    assert (broken.outcome, "(restricted)" in broken.message) == (Outcome.FAILED, True), broken.message

    strict = people.run("bronze.strict")
    names = '{"age":"(restricted)","friends":"(restricted)"}'
    assert (strict.outcome, names in strict.message) == (Outcome.BAD_INPUT, True), strict.message

    request = QuarantineRequest(said_by="ann", assign={"grade": "name"})
    copied = people.ask(Job.QUARANTINE_FIX, SILVER, request, dry_run=True)
    assert {row["received"].count("(restricted)") for row in copied.details["rows"]} == {6}, "a fix may copy a value"
    tried = people.ask(Job.QUARANTINE_FIX, SILVER, QuarantineRequest(said_by="ann"), dry_run=True)
    assert SHOWN in json.dumps(tried.details)

    spec = load_catalog(people.folder / "tables").spec(SILVER)
    version = CheckedVersion(table=SILVER, version=gate.version, suite_hash=spec.suite_hash)
    build(DataDocsArgs(root=people.paths.root, folder=tmp_path / "docs", run_id="run", versions=(version,)))

    written = dict(text_of(tmp_path / "docs")) | dict(text_of(people.folder / "reports"))
    written |= {Path(record.name): record.getMessage() for record in caplog.records}
    assert any(SHOWN in text for text in written.values()), "a neighbour is shown"
    assert any(path.suffix == ".html" and SHOWN in text for path, text in written.items())
    assert [path for path, text in written.items() if HIDDEN in text] == []
    tables = LakehouseReader(people.paths, people.folder / "tables").read(utc_now(), no_failed_tasks)
    told = attention_needed(tables, utc_now())
    assert {(item.table.table, item.kind) for item in told} == {(SILVER, Trouble.REFUSED), (REGISTER, Trouble.APPROVAL)}
    assert HIDDEN not in str([(item.cause, item.way_out, item.fields, item.message) for item in told])
    recorded = [deletes, ops.gates.verdicts(SILVER), *ops.gates.results(SILVER)]
    assert HIDDEN not in str(recorded)


def test_quarantined_rows_stay_as_they_are_and_are_shown_without_restricted_values(people: Lakehouse) -> None:
    people.run(BRONZE)
    people.run(SILVER)
    stored = [*people.waiting(BRONZE), *people.waiting(SILVER)]
    assert all(HIDDEN in row.record for row in stored)
    specs = load_catalog(people.folder / "tables").specs
    restrictions = Restrictions(specs)
    for table, values in ((BRONZE, ()), (SILVER, (SHOWN,))):
        shows = ShownRows(restrictions.of(table), restrictions.of_received(specs[table]))
        shown = str([shows.row(row) for row in people.waiting(table)])
        assert HIDDEN not in shown
        assert all(value in shown for value in values)
    assert f"number is no int: {SHOWN} 1" in shown
    assert "digits is no int: (restricted)" in shown


@pytest.mark.timeout(1200)
def test_a_driver_with_a_spark_of_its_own_writes_no_value_and_nothing_that_other_users_can_read(tmp_path: Path) -> None:
    people = Lakehouse(tmp_path)
    people.specs(*SPECS)
    people.deliver(1, "1.json", FIRST, feed="people")
    place = {**people.environment(), "LAKEHOUSE_JARS": str(CLONE / ".jars")}
    done = subprocess.run(
        [str(LAKEHOUSE), "run", "--interval", "2013-01-01"],
        env={**clean_environment(), **place},
        umask=0,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    root = people.paths.root
    written = dict(text_of(tmp_path / "lake" / "_millrace")) | {
        Path("stdout"): done.stdout,
        Path("stderr"): done.stderr,
    }
    logs = "".join(text for path, text in written.items() if path.suffix == ".log")
    assert "[CAST_INVALID_INPUT] (restricted)" in logs
    assert any(SHOWN in text for text in written.values()), "a neighbour is shown"
    assert [path for path, text in written.items() if HIDDEN in text] == []
    assert people.paths.quarantine(SILVER).is_dir()
    assert len(list(root.rglob("*.parquet"))) > 5
    assert open_to_others(root) == []

"""`lakehouse erase`: every place that has something of a person, what nobody can find, and the proof of its end."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.erase import finding
from millrace.erase.certificates import Certificates, require_chain
from millrace.erase.finding import Findings
from millrace.errors import ExitCode, MillraceError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs
from tests.support.ledger.delta_tables import file_contents

SUBJECT, NOW = "C-17", datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def shop(settings: Settings) -> Settings:
    """Orders of two customers in bronze and silver, of which silver does not have the one any more."""
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "string"}, "day": {"type": "date"}}
    silver = silver_document(columns=columns, sequence_by=["order_id"])
    gold = gold_document(measures={"orders": "count(*)"})
    write_specs(settings.tables, bronze_document(columns=columns, subject_keys={"buyer": "customer"}), silver, gold)
    rows = pa.table({"order_id": ["1", "2"], "buyer": [SUBJECT, "C-18"], "_rescued": [None, '{"friend":"C-17"}']})
    for table in ("bronze.orders", "silver.orders"):
        write_deltalake(str(settings.paths.table(table)), rows)
    DeltaTable(str(settings.paths.table("silver.orders"))).delete("buyer = 'C-17'")
    received = json.dumps({"order_id": "3", "buyer": SUBJECT})
    write_deltalake(str(settings.paths.quarantine("silver.orders")), pa.table({"received": [received, "{}"]}))
    put(settings.root / "ops/quarantine/1.json", received)
    put(settings.run_paths.reports / "r.json", '{"message": "key C-17 tied"}')
    put(Path(settings.landing) / "orders/date=2013-01-01/a.json", f"{received}\n")
    put(Path(settings.landing) / "orders/date=2013-01-01/b.json", '{"buyer": "C-171"}\n')
    (broken := Path(settings.landing) / "orders/2013/broken.json.gz").parent.mkdir()
    broken.write_bytes(gzip.compress(b"{}")[:-4])
    return settings


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_it_names_every_place_of_a_person_in_every_version_and_what_it_cannot_find(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path
) -> None:
    subjects, before = tmp_path / "subjects", file_contents(shop.root)
    subjects.write_text(f"{SUBJECT}\n")
    answer = lakehouse("erase", "find", "customer", "--subjects", str(subjects), "--json")
    assert answer.exit_code == 0, answer.output
    [found] = json.loads(answer.stdout)
    places: dict[tuple[str, str], dict[str, Any]] = {(each["name"], each["part"]): each for each in found["places"]}
    counts = {place: (each["rows"], each["mentions"], each["files"]) for place, each in places.items()}
    assert counts == {
        ("bronze.orders", "newest version"): (1, 1, 1),
        ("bronze.orders", "log"): (0, 1, 1),
        ("silver.orders", "newest version"): (0, 1, 1),
        ("silver.orders", "older versions"): (1, 1, 1),
        ("silver.orders", "log"): (0, 2, 2),
        ("silver.orders, quarantine", "newest version"): (1, 0, 1),
        ("silver.orders, quarantine", "log"): (0, 1, 1),
        ("ledger: ops.quarantine", "files"): (0, 1, 1),
        ("reports", "files"): (0, 1, 1),
        ("landing files of bronze.orders", "files"): (1, 0, 1),
    }
    assert places["silver.orders", "older versions"]["due"]
    assert not places["silver.orders", "newest version"]["due"]
    [follows], [broken] = found["not_covered"], found["unread"]
    assert follows.startswith("gold.revenue_daily has no key: its rows are computed from silver.orders")
    assert "orders/2013/broken.json.gz could not be searched" in broken
    shown = lakehouse("erase", "find", "customer", "--subjects", str(subjects))
    lines = [" ".join(line.split()) for line in shown.stdout.split("\n")]
    assert any(line.startswith("silver.orders older versions 1 1 1 ") for line in lines), shown.stdout
    assert SUBJECT not in shown.output, "the answer names nobody"
    assert file_contents(shop.root) == before


def test_an_unknown_kind_is_refused_with_those_that_exist(lakehouse: Lakehouse, shop: Settings, tmp_path: Path) -> None:
    (subjects := tmp_path / "subjects").write_text("x\n")
    answer = lakehouse("erase", "find", "custmer", "--subjects", str(subjects))
    assert answer.exit_code == ExitCode.BAD_INPUT
    assert "did you mean 'customer'" in answer.output


def test_a_certificate_is_written_once_the_newest_versions_are_clean_and_names_nobody(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path
) -> None:
    (subjects := tmp_path / "subjects").write_text(f"{SUBJECT}\n")
    command = ("erase", "prove", "customer", "--subjects", str(subjects), "--request")
    refused = lakehouse(*command, "DSR-1")
    assert refused.exit_code == ExitCode.FAILED
    assert "No certificate was written" in refused.output
    shutil.rmtree(shop.root / "ops")
    shutil.rmtree(shop.run_paths.reports)
    for file in ("date=2013-01-01/a.json", "2013/broken.json.gz"):
        (Path(shop.landing) / "orders" / file).unlink()
    for table in (shop.paths.table("bronze.orders"), shop.paths.table("silver.orders")):
        DeltaTable(str(table)).delete()
    DeltaTable(str(shop.paths.quarantine("silver.orders"))).delete()

    first = lakehouse(*command, "DSR-1")

    assert first.exit_code == 0, first.output
    certificate = json.loads(first.stdout)
    assert (certificate["number"], certificate["previous"], certificate["request"]) == (1, "", "DSR-1")
    assert certificate["state"] == "erased from the newest versions"
    assert certificate["versions"]["silver.orders"] == DeltaTable(str(shop.paths.table("silver.orders"))).version()
    assert max(place["due"] or "" for place in certificate["places"]) > certificate["searched_at"]
    for folder in ("bronze", "silver", "silver_quarantine"):
        shutil.rmtree(shop.root / folder)
    nothing = lakehouse(*command, "DSR-1")
    assert (nothing.exit_code, "LAKEHOUSE_ROOT names it" in nothing.output) == (ExitCode.BAD_INPUT, True)
    write_deltalake(str(shop.paths.table("bronze.orders")), pa.table({"order_id": ["2"], "buyer": ["C-18"]}))
    named = lakehouse(*command, f"of {SUBJECT}")
    assert (named.exit_code, "has a key of a subject" in named.output) == (ExitCode.BAD_INPUT, True)
    second = lakehouse(*command, "DSR-1")
    assert json.loads(second.stdout)["state"] == "erased from all versions"
    assert json.loads(second.stdout)["previous"] == hashlib.sha256(first.stdout.strip().encode()).hexdigest()
    listed = lakehouse("erase", "certificates")
    assert ["erased from" in line for line in listed.stdout.strip().split("\n")] == [True, True]
    assert all(SUBJECT not in answer.output for answer in (first, second, listed))
    assert all(SUBJECT.encode() not in content for content in file_contents(shop.root).values())


def test_what_cannot_be_searched_is_not_erased(lakehouse: Lakehouse, shop: Settings, tmp_path: Path) -> None:
    (subjects := tmp_path / "subjects").write_text("C-99\n")
    command = ("erase", "prove", "customer", "--subjects", str(subjects), "--request", "DSR-1")
    broken = Path(shop.landing) / "orders/2013/broken.json.gz"
    folder, odd = shop.paths.table("silver.orders"), shop.root / "bronze/orders/odd"
    for make, mend, cause in (
        (lambda: None, broken.unlink, "broken.json.gz could not be searched: it is damaged"),
        (
            lambda: shutil.move(folder / "_delta_log", tmp_path),
            lambda: shutil.move(tmp_path / "_delta_log", folder),
            "_delta",
        ),
        (lambda: os.mkfifo(odd), odd.unlink, "odd could not be searched: it is no file"),
    ):
        make()
        refused = lakehouse(*command)
        assert (refused.exit_code, cause in refused.output) == (ExitCode.FAILED, True), refused.output
        mend()
    assert lakehouse(*command).exit_code == 0


def test_a_wrong_spec_or_a_missing_folder_is_not_searched_and_what_no_spec_reads_is_named(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path
) -> None:
    (subjects := tmp_path / "subjects").write_text("C-99\n")
    command = ("erase", "prove", "customer", "--subjects", str(subjects), "--request", "DSR-1")
    landing = Path(shop.landing)
    (landing / "orders/2013/broken.json.gz").unlink()
    put(landing / "visits/2013/a.json", SUBJECT)
    put(landing / "prices/2013/a.json", SUBJECT)
    visits = bronze_document("bronze.visits", subject_keys={"order_id": "customer"})
    write_specs(shop.tables, bronze_document("bronze.prices"), {**visits, "sourse": "x"})
    wrong = lakehouse(*command)
    assert (wrong.exit_code, "bronze.visits: its spec is wrong" in wrong.output) == (ExitCode.FAILED, True)
    (shop.tables / "bronze/shop/visits.yaml").unlink()
    certificate = json.loads(lakehouse(*command).stdout)
    assert certificate["not_covered"][1:] == [
        "landing files of bronze.prices were not searched: by their specs they have no such keys",
        "landing folders that no table reads were not searched: visits",
    ]
    assert certificate["folders"][:2] == [str(shop.paths.root), shop.landing]
    shutil.rmtree(landing / "orders")
    gone = lakehouse(*command)
    assert (gone.exit_code, "there is no such folder" in gone.output) == (ExitCode.FAILED, True)


def test_what_vacuum_never_deletes_is_stored_and_what_a_hold_keeps_has_no_date(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path
) -> None:
    (subjects := tmp_path / "subjects").write_text(f"{SUBJECT}\n")
    put(Path(str(shop.paths.table("silver.orders"))) / "_tmp/part.json", SUBJECT)
    command = ("erase", "find", "customer", "--subjects", str(subjects), "--json")
    before, after = {}, {}
    for found in (before, after):
        [answer] = json.loads(lakehouse(*command).stdout)
        found |= {(each["name"], each["part"]): each["due"] for each in answer["places"]}
        assert lakehouse("hold", "set", "case-17", "silver.orders", "--why", "court order").exit_code == 0
    older, hidden = ("silver.orders", "older versions"), ("silver.orders", "files")
    assert (bool(before[older]), after[older], before[hidden]) == (True, None, None)


def test_a_file_that_is_written_during_the_search_is_searched(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (subjects := tmp_path / "subjects").write_text("C-99\n")
    table, listed = str(shop.paths.table("bronze.orders")), finding.files_below

    def then_another(folder: Any) -> list[Any]:
        files = list(listed(folder))
        write_deltalake(table, pa.table({"order_id": ["9"], "buyer": ["C-99"], "_rescued": [None]}), mode="append")
        return files

    monkeypatch.setattr(finding, "files_below", then_another)
    [found] = json.loads(lakehouse("erase", "find", "customer", "--subjects", str(subjects), "--json").stdout)
    places = {(each["name"], each["part"]): each["rows"] for each in found["places"]}
    assert places["bronze.orders", "newest version"] == 1


def test_mentions_that_a_person_has_judged_are_certified_with_the_reason_but_no_row_of_the_subject(
    lakehouse: Lakehouse, shop: Settings, tmp_path: Path
) -> None:
    (subjects := tmp_path / "subjects").write_text(f"{SUBJECT}\n")
    shutil.rmtree(shop.root / "ops")
    shutil.rmtree(shop.root / "silver_quarantine")
    shutil.rmtree(shop.run_paths.reports)
    (Path(shop.landing) / "orders/2013/broken.json.gz").unlink()
    (landed := Path(shop.landing) / "orders/date=2013-01-01/a.json").write_text('{"buyer": "C-18", "friend": "C-17"}\n')
    command = ("erase", "prove", "customer", "--subjects", str(subjects), "--request", "DSR-1")
    judged = ("--judged", "the friend is somebody else")
    of_subject = lakehouse(*command, *judged)
    DeltaTable(str(shop.paths.table("bronze.orders"))).delete("buyer = 'C-17'")
    shown, named = lakehouse(*command), lakehouse(*command, "--judged", f"of {SUBJECT}")
    landed.write_text('{"buyer": "C-17"}\n')
    in_landing = lakehouse(*command, *judged)
    landed.write_text('{"buyer": "C-18", "friend": "C-17"}\n')

    certified = lakehouse(*command, *judged)

    refused = (of_subject, in_landing)
    assert [answer.exit_code for answer in (*refused, shown)] == [ExitCode.FAILED] * 3
    assert ["--judged WHY" in " ".join(answer.output.split()) for answer in (*refused, shown)] == [False, False, True]
    assert (named.exit_code, "--judged has a key of a subject" in named.output) == (ExitCode.BAD_INPUT, True)
    assert certified.exit_code == 0, certified.output
    certificate = json.loads(certified.stdout)
    assert certificate["state"] == "erased from the newest versions"
    places = ["bronze.orders, newest version", "silver.orders, newest version", "landing files of bronze.orders, files"]
    assert certificate["judged"]["why"] == "the friend is somebody else"
    assert sorted(certificate["judged"]["places"]) == sorted(places)
    assert certificate["judged"]["mentions"] == 3


def test_a_certificate_that_was_changed_or_removed_is_noticed(tmp_path: Path) -> None:
    certificates, findings = Certificates(LakehousePaths(tmp_path)), Findings("x", 1, NOW, (), {}, 0, 0, ())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: certificates.write(findings, f"DSR-{number}", "ann", ""), range(4)))
    written = certificates.all()
    assert [each.number for each in written] == [1, 2, 3, 4]
    require_chain(written)
    changed = replace(written[1], text=written[1].text.replace("DSR", "dsr"))
    for tampered in ([written[0], changed, *written[2:]], [written[0], *written[2:]], written[1:]):
        with pytest.raises(MillraceError, match="certificate"):
            require_chain(tampered)

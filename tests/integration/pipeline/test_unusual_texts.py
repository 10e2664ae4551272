"""Any text goes through every layer and comes out as it went in: values, keys, field names, headers, file names."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from embedded.spark.server import SparkServer
from millrace.cli.app import app
from millrace.contracts.row_status import RowStatus
from millrace.contracts.spec.record_fields import field_text
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order
from tests.support.texts import ODD_TEXTS, texts

pytestmark = pytest.mark.slow

BRONZE, SILVER, HISTORY, GOLD, TABLE = (
    "bronze.orders",
    "silver.orders",
    "silver.history",
    "gold.by_note",
    "bronze.sheet",
)
DRAWN = st.lists(texts(), min_size=40, max_size=40, unique=True)
NAMES = st.lists(texts(without="/\0", min_size=1, max_size=20), min_size=6, max_size=6, unique=True)
# One example is enough of Spark's time: it holds dozens of texts. Nothing is shrunk.
once = settings(max_examples=1, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Delivered:
    """Orders with odd keys and notes; every third is refused by silver for its amount.

    Attributes:
        rows: key -> (note, amount).
    """

    rows: dict[str, tuple[str, int]]

    @property
    def refused(self) -> set[str]:
        return {key for key, (_, amount) in self.rows.items() if amount < 0}


def test_any_text_goes_through_json_and_all_layers(tmp_path: Path, server: SparkServer) -> None:
    @once
    @given(DRAWN, NAMES)
    def goes_through(drawn: list[str], names: list[str]) -> None:
        shop, delivered = Lakehouse(tmp_path), orders_of(list(dict.fromkeys([*ODD_TEXTS, *drawn])))
        state_tables(shop)
        files = deliver(shop, delivered, names)
        assert [report.outcome for report in shop.run_all(1, BRONZE, SILVER, HISTORY)] == [Outcome.COMMITTED] * 3
        require_bronze(shop, delivered, files)
        require_refused(shop, delivered)
        replay_edited(shop, delivered)
        wanted = {(key, note) for key, (note, _) in delivered.rows.items()}
        assert set(shop.rows(SILVER, "order_id", "note")) == wanted
        assert {row[:2] for row in shop.rows(HISTORY, "order_id", "note", "__END_AT")} == {
            (key, note) for key, note in wanted if key not in delivered.refused
        }
        assert shop.run(GOLD).outcome is Outcome.COMMITTED
        assert dict(shop.rows(GOLD, "note", "orders")) == Counter(note for note, _ in delivered.rows.values())
        require_shown(shop)

    goes_through()


def test_any_text_goes_through_csv(tmp_path: Path, server: SparkServer) -> None:
    # Of CSV, Spark takes NUL out of quoted values; an empty value is none.
    values, names = texts(without="\0", min_size=1), texts(without="\0", min_size=1).filter(str.strip)

    @once
    @given(st.lists(values, min_size=40, max_size=40), st.lists(names, min_size=3, max_size=3, unique_by=str.lower))
    def goes_through(drawn: list[str], headers: list[str]) -> None:
        shop = Lakehouse(tmp_path)
        columns = {"id": {"type": "string"}, "note": {"type": "string"}}
        source = {"landing": "orders", "files": "*.csv", "format": "csv"}
        shop.specs(bronze_document(TABLE, source=source, columns=columns))
        notes = [text for text in (*ODD_TEXTS, "a\r\nb", "\r", "end\r\n", *drawn) if text and "\0" not in text]
        rows = {f"{at}.{number}": note for at in range(3) for number, note in enumerate(notes)}
        for at, line_end in enumerate(("\n", "\r\n", "\r")):
            content = io.StringIO(newline="")
            writer = csv.writer(content, lineterminator=line_end)
            writer.writerow(["id", "note", *headers, "", "id"])
            of_file = [(key, note) for key, note in rows.items() if key.startswith(f"{at}.")]
            writer.writerows((key, note, note, "x", note[::-1], "unnamed", "twice") for key, note in of_file)
            shop.deliver(1, f"{at}.csv", content.getvalue())
        report = shop.run(TABLE)
        assert (report.outcome, report.rows.quarantined) == (Outcome.COMMITTED, 0), report.message
        assert dict(shop.rows(TABLE, "id", "note")) == rows
        rescued = {key: json.loads(text) for key, text in shop.rows(TABLE, "id", "_rescued")}
        fields = [*map(field_text, headers), "column 6", "column 7"]
        assert rescued == {
            key: dict(zip(fields, (note, "x", note[::-1], "unnamed", "twice"), strict=True))
            for key, note in rows.items()
        }

    goes_through()


def orders_of(keys: list[str]) -> Delivered:
    notes = [*keys[7:], *keys[:7]]
    amounts = [-number if number % 3 == 2 else number for number in range(len(keys))]
    return Delivered({key: (note, amount) for key, note, amount in zip(keys, notes, amounts, strict=True)})


def state_tables(shop: Lakehouse) -> None:
    bronze, silver = bronze_document(), silver_document()
    note = {"note": {"type": "string"}}
    refused = {"columns": {**silver["columns"], **note}, "expectations": [AT_LEAST_0]}
    by_note = {"group_by": {"note": "o.note"}, "measures": {"orders": "count(*)"}, "refresh_by": "note"}
    shop.specs(
        bronze_document(columns={**bronze["columns"], **note}),
        silver_document(**refused),
        silver_document(HISTORY, **refused, stored_as_scd_type=2),
        gold_document(GOLD, **by_note, refresh_from={"o": "note"}),
    )


def deliver(shop: Lakehouse, delivered: Delivered, names: list[str]) -> dict[str, str]:
    """Key -> the file that holds it; each file in a folder of an odd name of its own."""
    files: dict[str, str] = {}
    for at, name in enumerate(names):
        keys = list(delivered.rows)[at :: len(names)]
        lines = [
            {**order(1, delivered.rows[key][1]), "order_id": key, "note": delivered.rows[key][0], f"?{key}": key}
            for key in keys
        ]
        text = "".join(json.dumps(line, ensure_ascii=at % 2 == 0) + "\n" for line in lines)
        path = shop.deliver(1, f"x{name}/y{name}.json", text)
        files |= dict.fromkeys(keys, str(path.relative_to(shop.folder / "landing")))
    return files


def require_bronze(shop: Lakehouse, delivered: Delivered, files: dict[str, str]) -> None:
    found = {key: more for key, *more in shop.rows(BRONZE, "order_id", "note", "_source_file", "_rescued")}
    assert found.keys() == delivered.rows.keys()
    for key, (note, file, rescued) in found.items():
        assert (note, file, json.loads(rescued)) == (delivered.rows[key][0], files[key], {field_text(f"?{key}"): key})


def require_refused(shop: Lakehouse, delivered: Delivered) -> None:
    found = {json.loads(row.received)["order_id"]: row for row in shop.waiting(SILVER)}
    assert found.keys() == delivered.refused
    assert {json.loads(row.record)["note"] for row in found.values()} == {delivered.rows[key][0] for key in found}


def replay_edited(shop: Lakehouse, delivered: Delivered) -> None:
    """Bring the refused rows in, edited as `quarantine show --json` prints them."""
    shown = CliRunner().invoke(app, ["quarantine", "show", SILVER, "--json"], env=shop.environment()).stdout
    edited = []
    for line in shown.removesuffix("\n").split("\n"):
        row = json.loads(line)
        assert row["record"]["note"] == delivered.rows[row["record"]["order_id"]][0]
        edited.append(json.dumps({**row, "record": {**row["record"], "amount": 1}}, ensure_ascii=False))
    ids = [row.id for row in shop.waiting(SILVER)]
    report = shop.replay(SILVER, edited="\n".join(edited), rows={"ids": ids})
    assert report.rows.applied == len(ids) == len(delivered.refused)
    assert not shop.waiting(SILVER)
    assert len(shop.waiting(SILVER, RowStatus.REPLAYED)) == len(ids)


def require_shown(shop: Lakehouse) -> None:
    """Every table of the command line can be printed whatever its cells hold."""
    for words in (
        ["tables"], ["files", BRONZE], ["quarantine", "list"], ["quarantine", "show", SILVER, "--status", "replayed"],
        ["plan", "--interval", "2013-01-01"], ["gate", "show", SILVER],
    ):  # fmt: skip
        answer = CliRunner().invoke(app, words, env=shop.environment())
        assert answer.exit_code == 0, (words, answer.stderr, answer.exception)

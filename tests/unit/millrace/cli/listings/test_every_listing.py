"""Every listing, for a lakehouse with hostile names: as JSON, and as a table at 80 columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millrace.cli import output
from millrace.contracts.job.contention import LostRace
from millrace.contracts.job.report import CheckResult
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.commit_history import CommitHistory, TableWrite
from millrace.control.ledger.erasures import DecidedErasure, Erasures
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.holds import HoldEvent, Holds
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.control.log.batch import FileFact
from millrace.erase.certificates import Certificates
from millrace.erase.finding import Findings
from millrace.paths import LakehousePaths
from tests.support.cli import Lakehouse, installation
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.delta_tables import day
from tests.support.ledger.quarantine_rows import SEEN, quarantine, refused
from tests.unit.millrace.cli.test_every_command import EVERY

BRONZE = "bronze.orders"
LONG = "b" + 75 * "o"
FILE = f'orders/date=2013-01-02/[bold]"é\n{90 * "x"}.json'
REASON = 'expect_column_to_exist(a): "[red]" \\ is\nno {name: 1}'
ROW = 32 * "0123456789abcdef"[:2]

LISTINGS = {
    ("check",): {LONG},
    ("plan", "--interval", "2013-01-01"): {LONG, BRONZE},
    ("diff", f"bronze.{LONG}"): {LONG},
    ("health",): {BRONZE},
    ("lineage", f"bronze.{LONG}.amount"): {LONG, "amount", "cast(amount as int)"},
    ("tables",): {LONG, BRONZE, "7"},
    ("files", BRONZE): {FILE},
    ("columns", BRONZE): {LONG},
    ("erase", "certificates"): {REASON},
    ("erase", "status"): {REASON, BRONZE},
    ("conflicts",): {BRONZE, "ConcurrentAppendException"},
    ("gate", "show", BRONZE): {REASON},
    ("hold", "list"): {LONG, REASON},
    ("quarantine", "list"): {BRONZE, REASON},
    ("quarantine", "show", BRONZE): {ROW, REASON},
}
"""Command -> texts that it has to show in full."""

KEYS = {
    ("check",): {"table", "layer", "domain", "reads", "keys", "columns", "row_rules", "table_rules"},
    ("lineage", f"bronze.{LONG}.amount"): {"relation", "steps", "table", "column", "how", "text", "key", "line"},
    ("tables",): {"table", "version", "certified_version", "rows", "bytes", "quarantined", "damage", "has_valid_spec"},
    ("files", BRONZE): {"path", "status", "seen_at", "interval", "size", "tries", "batch_seq", "rows", "reason"},
    ("hold", "list"): {"name", "table", "since", "said_by", "why"},
    ("quarantine", "list"): {"table", "reason", "status", "rows", "first_seen", "first", "last", "batch_seq"},
    ("quarantine", "show", BRONZE): {"id", "record", "reasons"},
}
"""Command -> keys on which a script may rely."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a lakehouse of which each listing has something to show."""
    place = installation(tmp_path_factory.mktemp("lake"))
    spec = bronze_document(on_drift="evolve", evolve="ask")
    write_specs(Path(place["LAKEHOUSE_TABLES"]), spec, bronze_document(f"bronze.{LONG}"))
    paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
    rescued = pa.array([json.dumps({LONG: REASON})] * 7)
    write_deltalake(paths.table(BRONZE), pa.table({"amount": range(7), "_rescued": rescued}))
    table_id = quarantine(paths, BRONZE, *(refused(n, REASON, row_id=f"{ROW[:-1]}{n}") for n in range(7)))
    broken = FileFact(path=FILE, size=1200, mtime_ns=1, defect=REASON)
    Ledger(paths).record_files(FileEvent.FAILED, BRONZE, table_id, day(2), [broken])
    NewColumns(paths).record(ColumnState.PROPOSED, BRONZE, [LONG], run_id="scheduled__2013-01-01")
    check = CheckResult(rule=REASON, action="fail", passed=False, observed=float("inf"))
    result = GateResult(table=BRONZE, table_id=table_id, version=0, suite_hash="x", passed=False, checks=(check,))
    Gates(paths).record(result)
    Holds(paths).record(HoldEvent.SET, "case-17", [f"bronze.{LONG}"], said_by="ann", why=REASON)
    race = LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="manual__1", version=4)
    Certificates(paths).write(Findings("customer", 1, SEEN, (), {}, 0, 0, ()), REASON, "ann", "0a1b")
    Erasures(paths).decide(DecidedErasure("3f9c", "DSR-1", "customer", 1, "x", (BRONZE,), "ann", REASON), "cli")
    CommitHistory(paths).record(TableWrite(BRONZE, "backfill__1", SEEN, lost=(race,)))
    return place


def values(item: Any) -> Iterator[Any]:
    """Yield all keys and values of a JSON document."""
    for value in (*item, *item.values()) if isinstance(item, dict) else item:
        yield from values(value) if isinstance(value, dict | list) else [value]


def parsed(words: tuple[str, ...], stdout: str) -> list[dict[str, Any]]:
    """Return the objects; the rows of a quarantine are lines, for `fix --rows`."""
    lines = words[:2] == ("quarantine", "show")
    return [json.loads(line) for line in stdout.splitlines()] if lines else json.loads(stdout)


def test_every_command_that_lists_something_writes_json() -> None:
    listing = {words for words, command in EVERY.items() if re.match("List|Show", command.help or "")} - {("gate",)}
    listing -= {("quarantine",)}
    assert {("tables",), ("gate", "show")} <= listing
    assert [words for words in listing if "--json" not in {o for p in EVERY[words].params for o in p.opts}] == []
    assert {words[: 2 if words[0] in ("erase", "gate", "hold", "quarantine") else 1] for words in LISTINGS} >= listing


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_json_has_stable_keys_and_times_in_utc_and_a_table_at_80_columns_whole_names(
    lakehouse: Lakehouse, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = parsed(words, lakehouse(*words, "--json").stdout)
    assert items
    assert KEYS.get(words, set()) <= items[0].keys()
    found = list(values(items))
    texts = [value for value in found if isinstance(value, str)]
    times = [text for text in texts if re.match(r"\d{4}-\d\d-\d\dT", text)]
    assert [time for time in times if not time.endswith("Z")] == []
    monkeypatch.setattr(output, "WIDTH_WITHOUT_TERMINAL", 80)
    shown = lakehouse(*words).stdout
    # A file and a table name are longer than a line: what is folded is still there, in its order.
    assert max(len(line) for line in shown.split("\n")) <= 80
    assert "…" not in shown
    for name in LISTINGS[words]:
        assert any(name in text for text in texts) or (name.isdigit() and int(name) in found)
        assert "".join(name.split()) in "".join(shown.split())

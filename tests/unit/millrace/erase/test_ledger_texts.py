"""The ledger forgets the keys of erased subjects, and keeps all else that it knows."""

from __future__ import annotations

import json
from pathlib import Path

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.quarantine.events import Decision, QuarantineEvents, ReceivedRow
from millrace.erase.ledger_texts import forget_in_ledger
from millrace.erase.search import FileSearch, Keys
from millrace.erase.subjects import Subjects
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import file_contents

TABLE = "silver.orders"


def test_rows_of_subjects_are_emptied_and_their_keys_are_hidden_in_samples(tmp_path: Path) -> None:
    paths, gone, other = LakehousePaths(tmp_path), "customer-17", '{"buyer": "customer-18", "friend": "x"}'
    events, decision = QuarantineEvents(paths), Decision("ann", f"{gone} has called", "cli")
    rows = [ReceivedRow("r1", json.dumps({"buyer": gone})), ReceivedRow("r2", other)]
    events.pin(TABLE, "id", "replay", rows, decision)
    check = CheckResult(rule="unique", action="fail", passed=False, samples=(gone, "customer-18"))
    result = GateResult(table=TABLE, table_id="id", version=3, suite_hash="x", passed=False, checks=(check,))
    Gates(paths).record(result)
    subjects = Subjects("customer", (gone,))

    forget_in_ledger(subjects, {TABLE: FileSearch(subjects, Keys(["buyer"]))}, paths)

    assert [(row.id, row.received) for row in QuarantineEvents(paths).pinned_rows(TABLE, "replay")] == [
        ("r1", "{}"), ("r2", other)
    ]  # fmt: skip
    assert QuarantineEvents(paths).decision_of(TABLE, "replay").why == "(key) has called"
    [recorded] = Gates(paths).results_between(TABLE, "id", 0, 9)
    assert recorded.result.checks[0].samples == ("(key)", "customer-18")
    ledger = {name: content for name, content in file_contents(tmp_path).items() if name.startswith("ops/")}
    before = len(ledger)
    forget_in_ledger(subjects, {TABLE: FileSearch(subjects, Keys(["buyer"]))}, paths)
    assert len([name for name in file_contents(tmp_path) if name.startswith("ops/")]) == before, "nothing is left to do"

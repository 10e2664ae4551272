"""Commands that read end cleanly, however often they run: no thread of a library outlives the interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7200)]

TRIES = 1_000
REFUSED = 2_000
COMMANDS = {
    "quarantine show silver.orders --json": "o1999",
    "quarantine show bronze.orders --json": "{broken",
    "quarantine show silver.orders": "20 of 2,000",
    "quarantine list": "no negative prices",
    "tables": "gold.revenue_daily",
    "plan --interval 2013-01-01": "nothing to do",
    "files bronze.orders": "a.json",
    "columns bronze.orders": "colour",
    "gate show silver.orders": "passed",
    "conflicts": "No run had to wait or retry because of another run.",
    "check": "3 tables",
    "infer sound": "order_id",
}
"""What is asked -> a part of the answer."""


@pytest.fixture(scope="module")
def filled(shared: Lakehouse) -> Lakehouse:
    """A lakehouse with a row of every kind; a long text in each refused one, so that reading them takes threads."""
    rule = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
    shared.specs(
        bronze_document(on_drift="evolve", evolve="ask"),
        silver_document(expectations=[{**rule, "reason": "no negative prices"}]),
        gold_document(),
    )
    refused = [order(number, -1, colour="x" * 2_000) for number in range(REFUSED)]
    shared.deliver(1, "a.json", [order(-1, 5, colour="red"), "{broken", *refused])
    sound = shared.folder / "landing" / "sound" / "a.json"
    sound.parent.mkdir()
    sound.write_text(json.dumps(order(1, 5)))
    for report in shared.run_all(1, "bronze.orders", "silver.orders", "gold.revenue_daily"):
        assert report.certified_version == report.version, report.message
    return shared


def test_each_of_a_thousand_commands_ends_with_its_answer_and_without_a_word_on_stderr(filled: Lakehouse) -> None:
    program, environment = Path(sys.executable).parent / "lakehouse", {**clean_environment(), **filled.environment()}
    asked = [list(COMMANDS)[number % len(COMMANDS)] for number in range(TRIES)]

    def ends(command: str) -> tuple[int, str, bool]:
        words = [str(program), *command.split()]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr, COMMANDS[command] in done.stdout

    with ThreadPoolExecutor(2) as two:
        ended = list(two.map(ends, asked))
    assert len(ended) == TRIES
    assert [(command, how) for command, how in zip(asked, ended, strict=True) if how != (0, "", True)] == []

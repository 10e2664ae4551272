"""The winner of a race is the commit that Delta's error quotes, found in the log."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from include.contracts.job.contention import LostRace
from include.control.log.conflicting_commits import find_lost_race
from include.settings import Settings
from tests.support.ledger.delta_tables import append, commit_file, create_table, intent_of

KIND = "ConcurrentAppendException"


@pytest.fixture
def raced(tmp_path: Path) -> Path:
    """Return a table with three commits: a batch, maintenance, and another system's."""
    create_table(tmp_path)
    append(tmp_path, user_metadata=intent_of("id", 1).user_metadata())
    append(tmp_path, user_metadata=json.dumps({"maintenance": {"run_id": "scheduled__2", "token": "t"}}))
    append(tmp_path, user_metadata="not of ours")
    return tmp_path


def quoted(table: Path, version: int, **more: object) -> str:
    """Return an error message that quotes the commit, as Delta's messages do."""
    actions = map(json.loads, commit_file(table, version).read_text().splitlines())
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    said = {name: info[name] for name in ("timestamp", "operation")} | more
    return (
        "[DELTA_METADATA_CHANGED] a column was added.\n"
        f"Conflicting commit: {json.dumps(said)}\nRefer to https://docs.delta.io for more details."
    )


def test_the_lost_race_names_the_run_of_the_winner_if_the_error_quotes_its_commit(raced: Path) -> None:
    for version, run_id in ((1, "run-1"), (2, "scheduled__2"), (3, "")):
        found = find_lost_race(KIND, quoted(raced, version), raced, after=version - 1)
        assert found == LostRace(conflict=KIND, operation="WRITE", run_id=run_id, version=version)
    for message in ("", "[DELTA_CONCURRENT_APPEND] files were added"):
        assert find_lost_race(KIND, message, raced, after=0) == LostRace(conflict=KIND)


def test_the_id_of_the_commit_decides_if_there_is_one(raced: Path) -> None:
    path = commit_file(raced, 2)
    path.write_text(path.read_text().replace('"commitInfo":{', '"commitInfo":{"txnId":"a-b-c",', 1))
    assert find_lost_race(KIND, quoted(raced, 3, txnId="a-b-c"), raced, after=0).version == 2
    assert find_lost_race(KIND, quoted(raced, 3, txnId="of-none"), raced, after=0) == LostRace(conflict=KIND)


def test_a_conflict_of_files_names_the_version(raced: Path) -> None:
    message = (
        "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected. a concurrent WRITE added data to table "
        "delta.`file:/lake/silver/orders` committed at version 2. The concurrent operation modified data."
    )
    assert find_lost_race(KIND, message, raced, after=0).run_id == "scheduled__2"
    assert find_lost_race(KIND, message.replace("version 2", "version 20"), raced, after=0) == LostRace(conflict=KIND)


def conflicts_of_files() -> dict[str, str]:
    """Return the conditions that name a version, from Delta's jar: condition -> message."""
    (jar,) = Settings().jars.glob("delta-spark_*.jar")
    with zipfile.ZipFile(jar) as opened:
        listed = json.loads(opened.read("error/delta-error-classes.json"))
    said = {name: " ".join(one["message"]) for name, one in listed.items() if name.startswith("DELTA_CONCURRENT_")}
    return {name: message for name, message in said.items() if "<version>" in message}


def test_the_version_is_found_in_all_messages_of_delta(raced: Path) -> None:
    said = conflicts_of_files()
    assert len(said) == 3
    for condition, template in said.items():
        message = template.replace("<operation>", "DELETE").replace("<tableName>", "delta.`file:/lake/a (b)`")
        error = f"[{condition}.WITHOUT_HINT] {message.replace('<version>', '2')} Please retry the operation."
        assert find_lost_race(KIND, error, raced, after=0).version == 2, error

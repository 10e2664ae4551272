"""Conflicts of Delta with their remedies and the MERGE of rows with actions."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import delta.connect.exceptions
import delta.exceptions.base
import delta.exceptions.captured
import pytest

from millrace.contracts.job.contention import LostRace
from millrace.contracts.spec.common_settings import ConflictSpec
from millrace.errors import ConflictError
from millrace.settings import Settings
from millrace_spark.delta_io.conflict_policy import POLICY, Conflict, Remedy, WriteKind, conflict_of, remedy_of
from millrace_spark.delta_io.contest import Contest, retry_until_committed
from millrace_spark.delta_io.merges import merge_statement
from millrace_spark.transforms.silver.changes import ABSENT, CHANGES, DELETE, INSERT, UPDATE
from tests.support.ledger.delta_tables import append, create_table

WAYS = [delta.exceptions.base, delta.exceptions.captured, delta.connect.exceptions]
"""Where the classes come from: plain, through Py4J, over Spark Connect."""

CONDITIONS = {
    "DELTA_CONCURRENT_APPEND": Conflict.CONCURRENT_APPEND,
    "DELTA_CONCURRENT_DELETE_READ": Conflict.CONCURRENT_DELETE_READ,
    "DELTA_CONCURRENT_DELETE_DELETE": Conflict.CONCURRENT_DELETE_DELETE,
    "DELTA_CONCURRENT_TRANSACTION": Conflict.CONCURRENT_TRANSACTION,
    "DELTA_CONCURRENT_WRITE": Conflict.CONCURRENT_WRITE,
    "DELTA_METADATA_CHANGED": Conflict.METADATA_CHANGED,
    "DELTA_PROTOCOL_CHANGED": Conflict.PROTOCOL_CHANGED,
}


def delta_conditions() -> dict[str, dict[str, object]]:
    """The conditions that Delta itself lists, from its jar."""
    (jar,) = Settings().jars.glob("delta-spark_*.jar")
    with zipfile.ZipFile(jar) as opened:
        listed: dict[str, dict[str, object]] = json.loads(opened.read("error/delta-error-classes.json"))
    return listed


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_class_of_delta_is_told_by_its_name_whichever_way_it_comes(way: ModuleType) -> None:
    base = "DeltaConcurrentModificationException"
    named = {name for name in vars(delta.exceptions.base) if name.endswith("Exception")} - {base, "PySparkException"}
    assert named == {kind.value for kind in Conflict}
    for kind in Conflict:
        cls = getattr(way, kind.value)
        # Made without its constructor, which asks a running JVM for the message.
        assert conflict_of(cls.__new__(cls)) is kind


@pytest.mark.parametrize(("condition", "kind"), CONDITIONS.items())
def test_every_condition_is_told_with_any_suffix_also_within_a_bare_java_error(condition: str, kind: Conflict) -> None:
    for before in ("", f"An error occurred while calling o61.save.\n: io.delta.exceptions.{kind.value}: "):
        for suffix in ("", ".WITHOUT_HINT", ".SOMETHING_NEW"):
            assert conflict_of(RuntimeError(f"{before}[{condition}{suffix}] Transaction conflict detected.")) is kind


def test_the_conditions_are_those_of_delta() -> None:
    listed = delta_conditions()
    assert len(listed) > 100
    ours = {name for name in listed if conflict_of(RuntimeError(f"[{name}] text"))}
    assert ours == set(CONDITIONS)
    suffixes = {f"{name}.{suffix}" for name in ours for suffix in listed[name].get("subClass", {})}  # type: ignore[attr-defined]
    assert len(suffixes) >= 6
    assert all(conflict_of(RuntimeError(f"[{name}] text")) for name in suffixes)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(""),
        RuntimeError("ConcurrentAppendException: files were added by a concurrent update"),
        RuntimeError("see the page on DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
        RuntimeError("[CAST_INVALID_INPUT] The value 'ConcurrentWriteException' cannot be cast to INT"),
        RuntimeError("[DELTA_SCHEMA_CHANGED] Detected schema change"),
        RuntimeError("[CONCURRENT_APPEND] another system's condition"),
        ValueError("metadata changed"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_words_that_merely_occur_in_a_message_are_no_conflict(error: BaseException) -> None:
    assert conflict_of(error) is None


GUIDE = Path("docs/guides/conflicts.md")


def test_every_kind_of_write_has_a_remedy_for_every_conflict() -> None:
    assert {kind for kind in WriteKind if set(POLICY[kind]) == set(Conflict)} == set(WriteKind)
    again = {conflict for conflict in Conflict if remedy_of(WriteKind.BATCH, conflict) is Remedy.PLAN_AGAIN}
    assert again == {Conflict.CONCURRENT_TRANSACTION, Conflict.METADATA_CHANGED, Conflict.PROTOCOL_CHANGED}
    done = {(kind, conflict) for kind in WriteKind for conflict in Conflict if remedy_of(kind, conflict) is Remedy.DONE}
    assert done == {(WriteKind.SECONDARY, Conflict.CONCURRENT_TRANSACTION)}


def test_the_guide_has_a_line_for_each_conflict_with_each_remedy() -> None:
    lines = GUIDE.read_text().splitlines()
    [header] = [line for line in lines if line.startswith("| conflict |")]
    assert cells(header)[1:] == [kind.value for kind in WriteKind]
    for conflict in Conflict:
        [row] = [line for line in lines if line.startswith(f"| `{conflict}` |")]
        assert cells(row)[1:] == [remedy_of(kind, conflict).value for kind in WriteKind]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


TABLE = "silver.orders"


class Losing:
    """A write that meets these errors in turn, and then commits."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def conflict(condition: str, version: int | None = None) -> Exception:
    text = f"files were changed. committed at version {version}." if version is not None else "something changed"
    return RuntimeError(f"[{condition}] Transaction conflict detected. {text}")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path)
    append(tmp_path)
    return tmp_path


@pytest.fixture
def meets(table: Path) -> Callable[..., tuple[Contest, Losing]]:
    def run(kind: WriteKind, *errors: Exception, retries: int = 7) -> tuple[Contest, Losing]:
        contest, write = Contest(TABLE, ConflictSpec(max_commit_retries=retries)), Losing(*errors)
        assert retry_until_committed(contest, kind, table, write) == "done"
        return contest, write

    return run


def test_a_write_that_loses_is_tried_again_and_records_who_won(meets: Callable[..., tuple[Contest, Losing]]) -> None:
    lost, again = conflict("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT", version=1), conflict("DELTA_METADATA_CHANGED")
    contest, write = meets(WriteKind.MAINTENANCE, lost, again)
    assert write.tries == 3
    assert contest.lost == [
        LostRace(conflict="ConcurrentDeleteReadException", operation="WRITE", version=1),
        LostRace(conflict="MetadataChangedException"),
    ]


def test_a_secondary_write_is_done_when_another_was_first(table: Path) -> None:
    contest, write = Contest("silver_quarantine.orders"), Losing(conflict("DELTA_CONCURRENT_TRANSACTION"))
    assert retry_until_committed(contest, WriteKind.SECONDARY, table, write) is None
    assert (write.tries, contest.lost) == (1, [])


def test_it_gives_up_when_it_has_lost_too_often_or_at_once_where_another_try_does_not_help(
    meets: Callable[..., tuple[Contest, Losing]],
) -> None:
    errors = [conflict("DELTA_CONCURRENT_APPEND") for _ in range(3)]
    with pytest.raises(ConflictError, match=r"^silver.orders: lost to other writers 3 times in \d+ s"):
        meets(WriteKind.MAINTENANCE, *errors, retries=2)
    with pytest.raises(ConflictError, match="maintenance does not retry after that"):
        meets(WriteKind.MAINTENANCE, conflict("DELTA_CONCURRENT_TRANSACTION"))
    with pytest.raises(OSError, match="no space"):
        meets(WriteKind.MAINTENANCE, OSError("no space left"))


CLAUSE_OF = {DELETE: "DELETE", ABSENT: "DELETE", UPDATE: "UPDATE", INSERT: "INSERT"}


def clauses(*actions: str) -> list[str]:
    statement = merge_statement(Path("/lake/t"), ["k", "v"], {"k": "int"}, {"min_k": "1", "max_k": "9"}, actions)
    assert statement.startswith("MERGE INTO delta.`/lake/t` AS t USING changes AS s ON t.`k` = s.`k` AND t.`k` BETWEEN")
    return re.findall(r"THEN (\w+)", statement)


def test_a_merge_has_the_clause_of_each_of_its_actions_once() -> None:
    for action in CHANGES:
        assert clauses(action) == [CLAUSE_OF[action]]
    assert clauses(*CHANGES) == ["DELETE", "UPDATE", "INSERT"]
    assert clauses(INSERT, UPDATE) == clauses(UPDATE, INSERT) == ["UPDATE", "INSERT"]

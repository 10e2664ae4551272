"""Every kind of write has a remedy for every conflict, and the guide shows the same."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.delta_io.conflict_policy import POLICY, Remedy, WriteKind, remedy_of
from spark_jobs.delta_io.conflicts import Conflict

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

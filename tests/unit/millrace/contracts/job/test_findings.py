"""The lines about refused rows and ties that people read."""

from __future__ import annotations

from millrace.contracts.job.findings import MAX_SAMPLES, Findings, RefusedRows, Ties, merge_by_reason, merge_findings


def refused(reason: str, rows: int, *samples: str, action: str = "quarantine") -> RefusedRows:
    return RefusedRows(reason=reason, action=action, rows=rows, samples=samples)


def test_the_findings_of_several_batches_are_added_up_by_reason() -> None:
    first = Findings(
        refused=(refused("no id", 2, "a", "b"), refused("too old", 1, "c"), refused("no id", 1, action="drop")),
        ties=Ties(keys=1, samples=("x",)),
    )
    second = Findings(refused=(refused("too old", 4, *"defgh"),), ties=Ties(keys=2, samples=("y", "z")))
    found = merge_findings([first, Findings(), second])
    of_drops = refused("no id", 1, action="drop")
    assert found.refused == (refused("too old", 5, *"cdefg"), refused("no id", 2, "a", "b"), of_drops)
    assert found.ties == Ties(keys=3, samples=("x", "y", "z"))
    assert len(found.refused[0].samples) == MAX_SAMPLES
    assert merge_findings([]).lines("silver.orders") == ()


def test_a_line_names_the_command_that_shows_a_row_the_source_of_dropped_rows_and_the_keys_of_ties() -> None:
    dropped = refused("no day", 3, "a.json", "b.json", action="drop")
    ties = Ties(keys=2, samples=('id=1 at {"seq":5}', 'id=2 at {"seq":9}'))
    *lines, tie = Findings(refused=(refused("no id", 1, "3fa8"), dropped), ties=ties).lines("silver.orders")
    assert lines == [
        "silver.orders: 1 row went into quarantine: no id. See: lakehouse quarantine show silver.orders 3fa8",
        "silver.orders: 3 rows left out by a rule: no day. They came from a.json, b.json",
    ]
    assert tie.startswith("silver.orders: 2 keys have different events of the same sequence, such as id=1")
    assert "sequence_by" in tie
    [tie] = Findings(ties=ties.model_copy(update={"of_snapshot": True})).lines("silver.orders")
    assert ("sequence" in tie, "ask it to deliver each key once" in tie) == (False, True)


def test_many_reasons_share_a_line_after_the_most_frequent() -> None:
    refused = [RefusedRows(reason=f"rule {number}", action="quarantine", rows=number) for number in range(1, 19)]
    lines = Findings(refused=merge_by_reason(refused)).lines("silver.flights")
    assert [line.split(":")[1] for line in lines[:3]] == [
        f" {number} rows went into quarantine" for number in (18, 17, 16)
    ]
    assert lines[3:] == (
        "silver.flights: rows were refused for 15 further reasons, 120 times in all. See: lakehouse quarantine list",
    )

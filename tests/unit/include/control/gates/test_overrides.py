"""An override: which refusal it may be for, that it happens once, and its effect on later gates."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.contracts.spec.table_spec import parse_spec
from include.control.gates.gates import Gates
from include.control.gates.overrides import override, override_note
from include.errors import ExitCode, OverrideError
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_document
from tests.support.ledger.delta_tables import append, optimize
from tests.support.ledger.refused_table import RULE, RULE_NAME, SPEC, TABLE, decision, judge, refused_table


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path)


@pytest.fixture
def gates(paths: LakehousePaths) -> Gates:
    """Version 1 passed, version 2 was refused."""
    return refused_table(paths)


def test_the_refused_version_is_certified_and_the_decision_recorded(paths: LakehousePaths, gates: Gates) -> None:
    assert gates.certified(TABLE) == 1
    override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == 2
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert (kept.passed, kept.override, kept.suite_hash, kept.batches) == (
        True,
        decision(),
        SPEC.suite_hash,
        ("main/2",),
    )
    [check] = kept.checks
    assert (check.rule, check.passed, check.overridden, check.refuses) == (RULE_NAME, False, True, False)


@pytest.mark.usefixtures("gates")
def test_person_and_reason_are_columns_of_the_ledger(paths: LakehousePaths) -> None:
    override(SPEC, 2, decision(), paths)
    rows = DeltaTable(str(paths.ops("gates"))).to_pyarrow_table().sort_by("recorded_at").to_pylist()
    assert [(row["version"], row["passed"], row["overridden_by"], row["override_reason"]) for row in rows] == [
        (1, True, None, None),
        (2, False, None, None),
        (2, True, "ann", "a holiday"),
    ]


def test_a_later_refusal_stands_and_the_certified_version_stays(paths: LakehousePaths, gates: Gates) -> None:
    override(SPEC, 2, decision(), paths)
    append(paths.table(TABLE))
    judge(paths, 3)
    assert gates.certified(TABLE) == 2
    first = gates.first_refusal(TABLE, above=2)
    assert first is not None
    assert first.version == 3, "the overridden version is not refused any more"
    override(SPEC, 3, decision(reason="another one"), paths)
    assert gates.certified(TABLE) == 3


def test_a_late_refusal_of_the_same_version_does_not_undo_the_override(paths: LakehousePaths, gates: Gates) -> None:
    override(SPEC, 2, decision(), paths)
    judge(paths, 2)
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert kept.override == decision()
    assert gates.certified(TABLE) == 2


def test_a_version_that_was_optimized_since_can_be_overridden(paths: LakehousePaths, gates: Gates) -> None:
    optimized = optimize(paths.table(TABLE))
    override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == optimized


@pytest.mark.usefixtures("gates")
def test_a_version_that_passed_has_nothing_to_override(paths: LakehousePaths) -> None:
    with pytest.raises(OverrideError, match="version 1 passed its gate: there is nothing to override") as refused:
        override(SPEC, 1, decision(), paths)
    assert refused.value.exit_code == ExitCode.BAD_INPUT


@pytest.mark.usefixtures("gates")
def test_a_version_is_overridden_only_once(paths: LakehousePaths) -> None:
    override(SPEC, 2, decision(), paths)
    with pytest.raises(OverrideError, match="version 2 was overridden by ann at 2013-01-05 10:00 UTC: a holiday"):
        override(SPEC, 2, decision("bob", run_id="manual__2"), paths)


@pytest.mark.parametrize("version", [-1, 3])
@pytest.mark.usefixtures("gates")
def test_a_version_that_does_not_exist_cannot_be_overridden(paths: LakehousePaths, version: int) -> None:
    with pytest.raises(OverrideError, match=rf"has no version {version}: its newest is 2\n.*gate show silver\.orders"):
        override(SPEC, version, decision(), paths)


@pytest.mark.usefixtures("gates")
def test_a_version_without_a_result_cannot_be_overridden(paths: LakehousePaths) -> None:
    append(paths.table(TABLE))
    with pytest.raises(OverrideError, match="no gate has refused version 3; refused are 2"):
        override(SPEC, 3, decision(), paths)


def test_a_table_that_was_never_built_has_nothing_to_override(tmp_path: Path) -> None:
    with pytest.raises(OverrideError, match=r"silver\.orders was never built"):
        override(SPEC, 0, decision(), LakehousePaths(tmp_path))


def test_a_version_below_the_certified_one_cannot_be_overridden(paths: LakehousePaths, gates: Gates) -> None:
    judge(paths, append(paths.table(TABLE)), passed=True)
    with pytest.raises(OverrideError, match="readers use version 3, and never go back to 2"):
        override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == 3


def test_only_the_newest_of_several_refused_versions_can_be_overridden(paths: LakehousePaths, gates: Gates) -> None:
    judge(paths, append(paths.table(TABLE)))
    with pytest.raises(OverrideError, match=r"(?s)version 3 came after 2, and .*override version 3 if both"):
        override(SPEC, 2, decision(), paths)
    override(SPEC, 3, decision(), paths)
    assert gates.certified(TABLE) == 3


def test_a_newer_version_without_a_result_does_not_prevent_an_override(paths: LakehousePaths, gates: Gates) -> None:
    append(paths.table(TABLE))
    override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == 2


@pytest.mark.usefixtures("gates")
def test_changed_rules_must_check_the_version_before_an_override(paths: LakehousePaths) -> None:
    changed = parse_spec(silver_document(expectations=[{**RULE, "reason": "four at most"}]))
    with pytest.raises(OverrideError, match=r"the rules, or a table .* changed since version 2 was refused"):
        override(changed, 2, decision(), paths)


@pytest.mark.usefixtures("gates")
def test_an_override_needs_a_reason(paths: LakehousePaths) -> None:
    with pytest.raises(OverrideError, match="needs a reason"):
        override(SPEC, 2, decision(reason=" "), paths)


def test_a_version_with_missing_files_cannot_be_overridden(paths: LakehousePaths, gates: Gates) -> None:
    Path(DeltaTable(str(paths.table(TABLE)), version=2).file_uris()[0]).unlink()
    with pytest.raises(OverrideError, match="1 file of version 2 was removed by VACUUM"):
        override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == 1


def test_the_note_appears_while_readers_use_the_overridden_version(paths: LakehousePaths, gates: Gates) -> None:
    assert override_note(TABLE, gates.verdicts(TABLE)) == ()
    override(SPEC, 2, decision(), paths)
    [note] = override_note(TABLE, gates.verdicts(TABLE))
    assert note == (
        "readers use version 2 of silver.orders, overridden by ann at 2013-01-05 10:00 UTC: a holiday; "
        f"it had failed {RULE_NAME}"
    )
    judge(paths, append(paths.table(TABLE)), passed=True)
    assert override_note(TABLE, gates.verdicts(TABLE)) == ()

"""A rebuild that dies after any of its steps: readers see one table or the other, and asking again ends it right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.control.ledger.ledger import Ledger
from include.control.ledger.rebuilds import Rebuilds
from include.errors import ExitCode, Outcome
from spark_jobs.layers.rebuild.staged_builds import StagedBuild
from spark_jobs.layers.rebuild.switching import Switch
from tests.support.lakehouse import Lakehouse, copied
from tests.support.rebuilt_shop import GOLD, SILVER, anew, load, seen, state

pytestmark = pytest.mark.slow

STEPS: dict[str, tuple[type, str]] = {
    "asked for": (Rebuilds, "start"),
    "built": (StagedBuild, "build"),
    "refused rows brought": (Switch, "_write_beside"),
    "written down": (Switch, "_write_down"),
    "switched": (Switch, "_commit"),
    "closed": (Ledger, "record_closed"),
}
IN_USE = ["asked for", "built", "refused rows brought", "written down"]
"""The steps after which the old table is still the one in use."""


class DiedError(Exception):
    """Stands for a kill: nothing of the job runs any more."""


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    state(shared)
    load(shared, 1, 2)
    return shared


def dies_after(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    of, name = STEPS[step]
    real: Callable[..., Any] = getattr(of, name)

    def dying(self: Any, *args: Any, **more: Any) -> Any:
        real(self, *args, **more)
        if step != "closed" or args[0].intent.sources.rebuild:
            raise DiedError(step)

    monkeypatch.setattr(of, name, dying)


@pytest.mark.parametrize(
    "step",
    [step if step in ("written down", "switched") else pytest.param(step, marks=pytest.mark.faults) for step in STEPS],
)
def test_asking_again_ends_it_right_whoever_wrote_meanwhile(
    loaded: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    shop = copied(loaded, tmp_path / "shop")
    before = seen(shop)
    with monkeypatch.context() as patch:
        dies_after(patch, step)
        report = shop.rebuild(SILVER, downstream=True)
        assert (report.outcome, report.error_class) == (Outcome.FAILED, "DiedError"), report.message
    assert seen(shop) == before, "the same rows, of whichever table"

    load(shop, 3)
    wanted = anew(tmp_path / "anew", 1, 2, 3)
    assert seen(shop) == wanted
    resumed = shop.rebuild(SILVER)

    assert resumed.exit_code is ExitCode.OK, resumed.message
    assert set(resumed.details["tables"]) == {SILVER, GOLD}
    assert seen(shop) == wanted
    assert [shop.run(table, 3).outcome for table in (SILVER, GOLD)] == [Outcome.NO_OP] * 2
    assert not list(shop.paths.rebuilds.iterdir())

"""The worker's question: is there anything new?"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.deliveries import DAY
from benchmarks.nothing_new import decide


@pytest.fixture(autouse=True)
def lakehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKEHOUSE_LANDING", str(tmp_path / "landing"))
    return tmp_path


def test_a_day_that_was_never_loaded_has_something_to_do(lakehouse: Path) -> None:
    folder = lakehouse / "landing" / "flight_events" / f"date={DAY}"
    folder.mkdir(parents=True)
    (folder / "flight_events_00.json.gz").touch()
    with pytest.raises(SystemExit, match=r"bronze\.flight_events has something to do: 1 new of 1 file"):
        decide(DAY, ["bronze.flight_events"])

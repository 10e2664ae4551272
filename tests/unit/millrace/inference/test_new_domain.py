"""The files of a source are read within limits: a hostile one ends in an error, not in a dead terminal."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ByteSize

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.on_disk import LocalLanding
from millrace.errors import BadInputError
from millrace.inference.new_domain import SourceTables, source_tables


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalLanding:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return LocalLanding(str(tmp_path / "landing"))


def proposed(landing: LocalLanding, name: str, content: str, limits: FileLimits | None = None) -> SourceTables:
    """Deliver one file of a feed, and propose tables."""
    file = Path(landing.location(f"feed/{name}"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return source_tables(landing, "feed", "feed", "shop", (), limits)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "id,amount\n1,2\n2,3\n"), ("a.json", '{"id": 1}\n{"id": 2}\n')]
)
def test_a_file_that_takes_too_much_memory_is_named_and_the_next_one_is_read(
    landing: LocalLanding, tmp_path: Path, name: str, content: str
) -> None:
    with pytest.raises(BadInputError) as refused:
        proposed(landing, name, content, FileLimits(memory=ByteSize(1 << 20)))
    # With so little memory DuckDB says so, or its process dies.
    assert landing.location("feed") in str(refused.value).split("\n")[0]
    assert list((tmp_path / "temporary").iterdir()) == []
    assert "id: {type: bigint}" in proposed(landing, name, content).bronze


def test_files_that_take_too_long_are_left_and_leave_nothing(landing: LocalLanding, tmp_path: Path) -> None:
    content = '{"ID": {"a": [1, 2]}, "id": 2}\n' * 300_000
    with pytest.raises(BadInputError) as refused:
        proposed(landing, "a.json", content, FileLimits(time=timedelta(seconds=1)))
    cause, way_out = str(refused.value).split("\n")
    assert cause.startswith(f"1 file in {landing.location('feed')}: it takes more than 1 seconds to read its")
    assert "source.limits.time is 1 seconds" in cause
    assert way_out.startswith("Leave such a file out of the folder")
    assert list((tmp_path / "temporary").iterdir()) == []

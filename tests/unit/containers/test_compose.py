"""What a person reads if Docker Compose fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from containers.compose import Compose, ComposeError


def test_without_docker_the_error_names_the_cause_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
    with pytest.raises(ComposeError) as raised:
        Compose("millrace-tests", 8080).start()
    first, *_, last = str(raised.value).split("\n")
    assert first.startswith("docker compose up failed: ")
    assert str(tmp_path / "docker.sock") in first
    assert last.startswith("Start Docker")

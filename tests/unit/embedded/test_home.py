from __future__ import annotations

import socket
import stat
from pathlib import Path

from embedded.home import Home, free_port, keep_secret


def test_only_the_owner_can_read_secrets_logs_and_state(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.prepare()
    private = [home.airflow, home.spark, home.logs, home.pids, home.secrets]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in private} == {0o700}
    file = home.secrets / "token"
    assert keep_secret(file, "first") == keep_secret(file, "second") == "first"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_preferred_port_is_kept_while_it_is_free_and_left_when_it_is_taken() -> None:
    port = free_port()
    assert free_port(port) == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert free_port(port) not in (0, port)

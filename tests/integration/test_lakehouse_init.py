"""`lakehouse init` on files of all formats, with odd names: the checks accept what it writes, and a run loads it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE

pytestmark = pytest.mark.slow

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"
TICKETS = """ticket_id,opened_at,updated_at,state,priority,"Odd.one (""x"")"
T-1,2025-07-01T08:00:00Z,2025-07-01T08:00:00Z,open,2,x
T-2,2025-07-01T09:30:00Z,2025-07-01T09:30:00Z,"it's ""open"": # [x]",1,
T-1,2025-07-01T08:00:00Z,2025-07-01T11:15:00Z,"it's ""open"": # [x]",2,y
"""
AVRO = {
    "type": "record",
    "name": "agent",
    "fields": [{"name": "agent_id", "type": "long"}, {"name": "team", "type": "string"}],
}


def deliver(landing: Path) -> None:
    """Four sources: CSV by day, JSON with odd names, Parquet by day without a time, and Avro."""
    folders = ("tickets/date=2025-07-01", "Odd näme's {x}/2013", "rates/date=2025-07-01", "agents")
    tickets, odd, rates, agents = (landing / folder for folder in folders)
    for folder in (tickets, odd, rates, agents):
        folder.mkdir(parents=True)
    (tickets / "tickets.csv").write_text(TICKETS)
    lines = "".join(json.dumps({"id": n, "text": f"{n}: 'x'", "delivered_in": None}) + "\n" for n in range(5))
    (odd / "it's a [file].json.gz").write_bytes(gzip.compress(lines.encode()))
    pq.write_table(pa.table({"currency": ["EUR", "EUR", "USD"], "product": ["a", "b", "a"]}), rates / "rates.parquet")
    with (agents / "agents.avro").open("wb") as stream:
        fastavro.writer(stream, AVRO, [{"agent_id": 1, "team": "a"}, {"agent_id": 2, "team": "b"}])


@pytest.mark.timeout(1200)
def test_what_it_writes_is_accepted_and_loads_every_row(tmp_path: Path) -> None:
    deliver(tmp_path / "landing")
    (tmp_path / "tables").mkdir()
    folders = {f"LAKEHOUSE_{name.upper()}": str(tmp_path / name) for name in ("root", "landing", "tables", "runs")}
    environment = {**clean_environment(), **folders, "LAKEHOUSE_JARS": str(CLONE / ".jars")}

    def run(*words: str) -> str:
        command = [LAKEHOUSE, *words]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    said = run("init", "support", str(tmp_path / "landing"), "--dags", str(tmp_path / "dags"))
    assert said.endswith("  lakehouse run --domain support --interval 2025-07-01\n")
    run("check")
    run(*said.split("\n")[-2].split()[1:])
    rows = {path.name: DeltaTable(str(path)).count() for path in (tmp_path / "root" / "silver").iterdir()}
    assert rows == {"tickets": 2, "odd_name_s_x": 5, "rates": 3, "agents": 2}

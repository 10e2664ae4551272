"""The demo's commands, files and displays."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from demo.backfill import DayOfBackfill, failed_tasks
from demo.kafka.feed import write_specs
from demo.lakehouse import NotTheDemosError, start_empty
from demo.progress import BackfillProgress
from demo.query import query_line, run_line
from demo.source_system.landing import csv_table, json_lines, write_whole
from embedded.airflow.api import Run, Task
from millrace.catalog import load_catalog
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.reading.certified_lake import orders, write_version


def test_the_tables_are_those_of_the_landing_files_but_for_their_source(tmp_path: Path) -> None:
    write_specs(Settings().tables, tmp_path)
    fed, of_files = load_catalog(tmp_path), load_catalog(Settings().tables)
    assert list(fed.specs) == ["bronze.flight_events", "silver.flights"]
    assert fed.spec("silver.flights") == of_files.spec("silver.flights")
    bronze = fed.spec("bronze.flight_events")
    assert bronze.model_dump(exclude={"source"}) == of_files.spec("bronze.flight_events").model_dump(exclude={"source"})
    assert bronze.source.label == "Kafka demo: flight_events"  # type: ignore[union-attr]


def test_the_printed_line_runs_and_reads_the_certified_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = LakehousePaths(tmp_path / "it's $HOME")
    write_version(paths, orders("a", "b"))
    write_version(paths, orders("refused"), passed=False)
    run_line(query_line(paths.root, "SELECT name, 'in \"$HOME\"' AS place FROM silver.orders"))
    assert capfd.readouterr().out.splitlines()[1:] == ['"a","in ""$HOME"""', '"b","in ""$HOME"""']


def test_the_command_refuses_days_without_data_and_says_which_ones_there_are(tmp_path: Path) -> None:
    days = ["--start", "2015-01-01", "--end", "2015-01-02"]
    command = [sys.executable, "-m", "demo.source_system", "--landing", str(tmp_path), *days]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "2012-12-31" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def held(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_the_tables_of_an_earlier_demo_are_deleted_and_others_never(tmp_path: Path) -> None:
    assert not start_empty(tmp_path / "lake")
    assert held(tmp_path / "lake") == ["MADE_BY_THE_DEMO"]
    (tmp_path / "lake" / "silver").mkdir()
    assert start_empty(tmp_path / "lake")
    assert held(tmp_path / "lake") == ["MADE_BY_THE_DEMO"]
    with pytest.raises(NotTheDemosError, match="LAKEHOUSE_ROOT=data/demo make demo"):
        start_empty(tmp_path)
    assert held(tmp_path) == ["lake"]


def test_json_lines_are_the_same_bytes_every_time_and_a_null_of_csv_is_an_empty_field() -> None:
    content = json_lines(['{"a":1}', '{"a":2}'])
    assert gzip.decompress(content) == b'{"a":1}\n{"a":2}\n'
    assert content[4:8] == bytes(4), "a time stamp in the header would make every layout another one"
    assert csv_table(["a", "b"], [("1", None), ('x, "y"', "2")]) == b'a,b\n1,\n"x, ""y""",2\n'


def test_a_file_is_replaced_when_its_content_changes_and_otherwise_left_alone_and_no_part_stays(tmp_path: Path) -> None:
    path = tmp_path / "feed" / "file.csv"
    write_whole(path, b"one")
    before = path.stat()
    write_whole(path, b"one")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    (tmp_path / "feed" / "in-the-way.csv" / "x").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "feed" / "in-the-way.csv", b"one")
    assert held(path.parent) == ["file.csv", "in-the-way.csv"]


WHEN = datetime(2013, 1, 2, tzinfo=UTC)


def task(task_id: str, state: str | None, seconds: float | None = None) -> Task:
    return Task.model_construct(task_id=task_id, state=state, start_date=WHEN if state else None, duration=seconds)


def day(*tasks: Task) -> DayOfBackfill:
    return DayOfBackfill(Run.model_construct(dag_id="flights", state="running", data_interval_start=WHEN), tasks)


def shown(*states: DayOfBackfill) -> str:
    console = Console(file=io.StringIO(), width=160)
    last = BackfillProgress(console).show([state] for state in states)
    assert last == [states[-1]]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_layer_is_told_once_when_all_its_tasks_have_ended_with_the_seconds_of_sensor_and_gate_in_the_tables() -> None:
    done = [task("silver.c", None), task("bronze.a.files", "success", 0.25), task("bronze.a", "success", 2.0)]
    assert list(day(*done).layers) == ["bronze", "silver"]
    half = day(*done, task("bronze.a_gate", "running"))
    whole = day(*done, task("bronze.a_gate", "success", 0.5))
    lines = shown(half, whole, whole).splitlines()
    assert [line for line in lines if "a 2.8 s" in line] == ["2013-01-02  bronze  a 2.8 s"]


def test_what_did_not_succeed_is_named() -> None:
    end = day(task("silver.a", "success", 1.0), task("silver.a_gate", "failed", 1.0), task("gold.b", "upstream_failed"))
    text = shown(end)
    assert "silver.a_gate failed" in text
    assert "gold.b upstream_failed" in text
    assert [one.task_id for one in failed_tasks([end])] == ["silver.a_gate"]

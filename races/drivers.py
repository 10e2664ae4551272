"""Several Spark drivers with several threads append to one table, with or without delta-rs writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from millrace.driver_environment import driver_environment, own_spark
from millrace.settings import Settings
from millrace.spark_conf import LOG_STORES, launch_conf
from millrace.spark_location import spark_home
from races import delta_rs_writer, driver
from races.places import Place, tokens_of

_TO_START_AND_END_S = 180
SCHEMA = pa.schema([("id", pa.int64())])


@dataclass(frozen=True)
class Crowd:
    """The writers of a race.

    Attributes:
        drivers: the number of Spark drivers, each in its own process.
        threads: the number of threads of each driver.
        delta_rs: the number of delta-rs writers, each in its own process.
        seconds: the time for which each appends.
        stock: whether Spark uses Delta's own log stores instead of Millrace's.
    """

    drivers: int = 4
    threads: int = 3
    delta_rs: int = 0
    seconds: float = 600
    stock: bool = False


@dataclass(frozen=True)
class Score:
    """The result of a race.

    Attributes:
        acknowledged: the number of acknowledged commits.
        lost: the number of acknowledged commits that are not in the log.
        doubled: the number of tokens that are in the log more than once.
        errors: class of error -> count.
        torn: why the table cannot be read afterwards; empty if it can.
    """

    acknowledged: int
    lost: int
    doubled: int
    errors: Counter[str]
    torn: str = ""


def race(place: Place, crowd: Crowd, folder: Path) -> Score:
    """Run the writers on a new table, and compare their notes with the table's log."""
    table = place.new_folder()
    options = place.delta_rs_options
    DeltaTable.create(table, SCHEMA, storage_options=options)
    writers = {"spark": crowd.drivers, "rs": crowd.delta_rs}
    notes = [folder / f"{kind}-{number}.txt" for kind, count in writers.items() for number in range(count)]
    for note in notes:
        note.unlink(missing_ok=True)
    with ExitStack() as running:
        started = [running.enter_context(_start(place, crowd, table, note)) for note in notes]
        for process in started:
            process.wait(timeout=crowd.seconds + _TO_START_AND_END_S)
    return _score(place, table, notes)


def _start(place: Place, crowd: Crowd, table: str, note: Path) -> subprocess.Popen[bytes]:
    note.parent.mkdir(parents=True, exist_ok=True)
    if note.name.startswith("spark"):
        argv = _spark(place, crowd, table, note)
    else:
        argv = [sys.executable, "-m", delta_rs_writer.__name__, table, str(crowd.seconds), str(note)]
        argv.append(json.dumps(place.delta_rs_options))
    environment = driver_environment(os.environ, "local", {**own_spark(), **place.environment})
    with note.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(argv, env=environment, stdout=log, stderr=log)


def _spark(place: Place, crowd: Crowd, table: str, note: Path) -> list[str]:
    hadoop = {f"spark.hadoop.{key}": value for key, value in place.settings.items()}
    conf = launch_conf(Settings().jars, "local[2]") | hadoop | {"spark.sql.warehouse.dir": str(note.parent)}
    if crowd.stock:
        conf = {key: value for key, value in conf.items() if key not in LOG_STORES}
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    spark_submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g", *pairs]
    return [*spark_submit, driver.__file__, table, str(crowd.threads), str(crowd.seconds), str(note)]


def _score(place: Place, table: str, notes: list[Path]) -> Score:
    results = [driver.read_notes(note) for note in notes]
    acknowledged = [token for tokens, _ in results for token in tokens]
    log = place.log_of(table)
    committed = Counter(tokens_of(log))
    return Score(
        acknowledged=len(acknowledged),
        lost=sum(token not in committed for token in acknowledged),
        doubled=sum(count > 1 for count in committed.values()),
        errors=sum((errors for _, errors in results), Counter()),
        torn=torn(log),
    )


def torn(versions: Iterable[int]) -> str:
    """Return why a table whose log has these versions cannot be read; empty if it can.

    >>> torn([0, 1, 3])
    'version 2 is missing'
    """
    existing = set(versions)
    missing = sorted(set(range(len(existing))) - existing)
    return f"version {missing[0]} is missing" if missing else ""

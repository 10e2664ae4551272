"""Several Spark drivers of several threads each append to one table, with delta-rs writers beside them or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from include.driver_environment import driver_environment, own_spark
from include.settings import Settings
from include.spark_conf import LOG_STORES, launch_conf
from include.spark_location import spark_home
from races import delta_rs_writer, driver
from races.places import Place, tokens_of

_TO_START_AND_END_S = 180
SCHEMA = pa.schema([("id", pa.int64())])


@dataclass(frozen=True)
class Crowd:
    """Who races, and for how long.

    Attributes:
        drivers: Spark drivers, a process each.
        threads: of each of them.
        delta_rs: writers of delta-rs beside them, a process each.
        seconds: how long each appends.
        stock: whether Spark commits by Delta's own log stores, instead of Millrace's.
    """

    drivers: int = 4
    threads: int = 3
    delta_rs: int = 0
    seconds: float = 600
    stock: bool = False


@dataclass(frozen=True)
class Score:
    """What a race has shown.

    Attributes:
        acknowledged: commits of which a writer was told that they are there.
        lost: those of them that are not in the log.
        doubled: tokens that are in the log more than once.
        errors: class of error -> how often a writer met it.
        torn: why nobody could read the table afterwards; empty when it could be read.
    """

    acknowledged: int
    lost: int
    doubled: int
    errors: Counter[str]
    torn: str = ""


def race(place: Place, crowd: Crowd, folder: Path) -> Score:
    """Let them race for a new table, and compare what they were told with the table's log."""
    table = place.new_folder()
    options = place.delta_rs_options
    DeltaTable.create(table, SCHEMA, storage_options=options)
    notes = [folder / f"{kind}-{number}.txt" for kind, number in _writers(crowd)]
    for note in notes:
        note.unlink(missing_ok=True)
    with ExitStack() as running:
        started = [running.enter_context(_start(place, crowd, table, note)) for note in notes]
        for process in started:
            process.wait(timeout=crowd.seconds + _TO_START_AND_END_S)
    return _score(place, table, notes)


def _writers(crowd: Crowd) -> list[tuple[str, int]]:
    return [("spark", number) for number in range(crowd.drivers)] + [("rs", number) for number in range(crowd.delta_rs)]


def _start(place: Place, crowd: Crowd, table: str, note: Path) -> subprocess.Popen[bytes]:
    note.parent.mkdir(parents=True, exist_ok=True)
    argv = _spark(place, crowd, table, note) if note.name.startswith("spark") else _delta_rs(place, crowd, table, note)
    environment = driver_environment(os.environ, "local", {**own_spark(), **place.environment})
    with note.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(argv, env=environment, stdout=log, stderr=log)


def _spark(place: Place, crowd: Crowd, table: str, note: Path) -> list[str]:
    conf = launch_conf(Settings().jars, "local[2]") | {f"spark.hadoop.{key}": value for key, value in _hadoop(place)}
    if crowd.stock:
        conf = {key: value for key, value in conf.items() if key not in LOG_STORES}
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    spark_submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g", *pairs]
    return [*spark_submit, driver.__file__, table, str(crowd.threads), str(crowd.seconds), str(note)]


def _delta_rs(place: Place, crowd: Crowd, table: str, note: Path) -> list[str]:
    argv = [sys.executable, "-m", delta_rs_writer.__name__, table, str(crowd.seconds), str(note)]
    return [*argv, json.dumps(place.delta_rs_options)]


def _hadoop(place: Place) -> list[tuple[str, str]]:
    settings: Mapping[str, str] = place.settings
    return list(settings.items())


def _score(place: Place, table: str, notes: list[Path]) -> Score:
    told = [driver.told(note) for note in notes]
    acknowledged = [token for tokens, _ in told for token in tokens]
    log = place.log_of(table)
    there = Counter(tokens_of(log))
    return Score(
        acknowledged=len(acknowledged),
        lost=sum(token not in there for token in acknowledged),
        doubled=sum(count > 1 for count in there.values()),
        errors=sum((errors for _, errors in told), Counter()),
        torn=torn(log),
    )


def torn(versions: Iterable[int]) -> str:
    """Why a table whose log has these versions cannot be read; empty when it can.

    >>> torn([0, 1, 3])
    'version 2 is missing'
    """
    there = set(versions)
    missing = sorted(set(range(len(there))) - there)
    return f"version {missing[0]} is missing" if missing else ""

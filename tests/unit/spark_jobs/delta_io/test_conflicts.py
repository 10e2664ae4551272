"""Delta's conflicts, told by their class or by their condition, never by a word that merely occurs."""

from __future__ import annotations

import json
import zipfile
from types import ModuleType

import delta.connect.exceptions
import delta.exceptions.base
import delta.exceptions.captured
import pytest

from include.settings import Settings
from spark_jobs.delta_io.conflicts import Conflict, conflict_of

WAYS = [delta.exceptions.base, delta.exceptions.captured, delta.connect.exceptions]
"""Where the classes come from: plain, through Py4J, over Spark Connect."""

CONDITIONS = {
    "DELTA_CONCURRENT_APPEND": Conflict.CONCURRENT_APPEND,
    "DELTA_CONCURRENT_DELETE_READ": Conflict.CONCURRENT_DELETE_READ,
    "DELTA_CONCURRENT_DELETE_DELETE": Conflict.CONCURRENT_DELETE_DELETE,
    "DELTA_CONCURRENT_TRANSACTION": Conflict.CONCURRENT_TRANSACTION,
    "DELTA_CONCURRENT_WRITE": Conflict.CONCURRENT_WRITE,
    "DELTA_METADATA_CHANGED": Conflict.METADATA_CHANGED,
    "DELTA_PROTOCOL_CHANGED": Conflict.PROTOCOL_CHANGED,
}


def delta_conditions() -> dict[str, dict[str, object]]:
    """The conditions that Delta itself lists, from its jar."""
    (jar,) = Settings().jars.glob("delta-spark_*.jar")
    with zipfile.ZipFile(jar) as opened:
        listed: dict[str, dict[str, object]] = json.loads(opened.read("error/delta-error-classes.json"))
    return listed


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_class_of_delta_is_told_by_its_name_whichever_way_it_comes(way: ModuleType) -> None:
    base = "DeltaConcurrentModificationException"
    named = {name for name in vars(delta.exceptions.base) if name.endswith("Exception")} - {base, "PySparkException"}
    assert named == {kind.value for kind in Conflict}
    for kind in Conflict:
        cls = getattr(way, kind.value)
        # Made without its constructor, which asks a running JVM for the message.
        assert conflict_of(cls.__new__(cls)) is kind


@pytest.mark.parametrize(("condition", "kind"), CONDITIONS.items())
def test_every_condition_is_told_with_any_suffix_also_within_a_bare_java_error(condition: str, kind: Conflict) -> None:
    for before in ("", f"An error occurred while calling o61.save.\n: io.delta.exceptions.{kind.value}: "):
        for suffix in ("", ".WITHOUT_HINT", ".SOMETHING_NEW"):
            assert conflict_of(RuntimeError(f"{before}[{condition}{suffix}] Transaction conflict detected.")) is kind


def test_the_conditions_are_those_of_delta() -> None:
    listed = delta_conditions()
    assert len(listed) > 100
    ours = {name for name in listed if conflict_of(RuntimeError(f"[{name}] text"))}
    assert ours == set(CONDITIONS)
    suffixes = {f"{name}.{suffix}" for name in ours for suffix in listed[name].get("subClass", {})}  # type: ignore[attr-defined]
    assert len(suffixes) >= 6
    assert all(conflict_of(RuntimeError(f"[{name}] text")) for name in suffixes)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(""),
        RuntimeError("ConcurrentAppendException: files were added by a concurrent update"),
        RuntimeError("DELTA_CONCURRENT_APPEND happened somewhere"),
        RuntimeError("see the page on DELTA_CONCURRENT_APPEND.WITHOUT_HINT"),
        RuntimeError("[CAST_INVALID_INPUT] The value 'ConcurrentWriteException' cannot be cast to INT"),
        RuntimeError("[DELTA_SCHEMA_CHANGED] Detected schema change"),
        RuntimeError("[DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE] Cannot perform Merge"),
        RuntimeError("[CONCURRENT_APPEND] another system's condition"),
        ValueError("metadata changed"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_words_that_merely_occur_in_a_message_are_no_conflict(error: BaseException) -> None:
    assert conflict_of(error) is None

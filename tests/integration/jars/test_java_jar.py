"""What Millrace has in Java is compiled when its sources have changed, and only then."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.clone import CLONE
from millrace.jars.java_jar import CompileError, JavaJar, own_jar
from millrace.settings import Settings

pytestmark = pytest.mark.slow

CLASSES = {"io/millrace/logstore/ConditionalPutLogStore.class", "io/millrace/logstore/HardLinkLogStore.class"}


@pytest.fixture
def jar(tmp_path: Path) -> JavaJar:
    """The jar of a copy of the sources."""
    sources, jars = tmp_path / "src", tmp_path / "jars"
    shutil.copytree(CLONE / "spark_jobs" / "millrace_spark" / "log_store" / "src", sources)
    jars.mkdir()
    (storage,) = Settings().jars.glob("delta-storage-*.jar")
    shutil.copy(storage, jars)
    return replace(own_jar("millrace-log-store", jars), sources=sources)


def test_the_log_store_is_compiled_only_after_a_change_and_stays_if_that_does_not_compile(jar: JavaJar) -> None:
    jar.build()
    first, content = jar.path.stat(), jar.path.read_bytes()
    with zipfile.ZipFile(jar.path) as archive:
        assert set(archive.namelist()) >= CLASSES

    jar.build()
    assert jar.path.stat().st_ino == first.st_ino

    source = next(jar.sources.rglob("HardLinkLogStore.java"))
    right = source.read_text()
    source.write_text("class {")
    with pytest.raises(CompileError, match=r"(?s)do not compile.*HardLinkLogStore\.java:1"):
        jar.build()
    assert jar.path.read_bytes() == content
    assert [path.name for path in jar.path.parent.glob(".*")] == []

    source.write_text(f"{right}\n")
    jar.build()
    assert jar.path.stat().st_ino != first.st_ino


def test_the_formats_compile_against_nothing_but_spark_s_own_jars(tmp_path: Path) -> None:
    jar = own_jar("millrace-formats", tmp_path)
    jar.build()
    with zipfile.ZipFile(jar.path) as archive:
        assert {"io/millrace/formats/ZstdCodec.class", "io/millrace/formats/JsonElements.class"} <= set(
            archive.namelist()
        )


def test_a_machine_without_a_compiler_is_told_to_install_a_jdk(jar: JavaJar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(jar.path.parent))

    with pytest.raises(CompileError, match="Install a JDK 17, not only a Java runtime"):
        jar.build()

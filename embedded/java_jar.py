"""Compile Millrace's Java sources: each jar when its sources have changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from include.errors import MillraceError

_FINGERPRINT = "META-INF/millrace-sources.sha256"
_TWO_MINUTES = 120


class CompileError(MillraceError):
    """Raised when sources do not compile; the message has the output of javac."""


@dataclass(frozen=True)
class JavaJar:
    """A jar of Millrace's own classes.

    Attributes:
        path: the jar's file.
        sources: the root of its Java sources.
        classpath: the jars to compile against.
    """

    path: Path
    sources: Path
    classpath: tuple[Path, ...]

    def build(self) -> None:
        """Compile, unless the jar was made from the same sources and the same classpath.

        Raises:
            CompileError: javac is missing, older than 17, or refuses the sources; the jar does not change then.
        """
        fingerprint = self._fingerprint()
        if _fingerprint_in(self.path) == fingerprint:
            return
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".compiling-") as scratch:
            classes = Path(scratch) / "classes"
            self._compile(classes)
            unfinished = Path(scratch) / self.path.name
            _pack(classes, fingerprint, unfinished)
            unfinished.replace(self.path)

    def _source_files(self) -> list[Path]:
        return sorted(self.sources.rglob("*.java"))

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for jar in self.classpath:
            digest.update(f"{jar.name}\n".encode())
        for source in self._source_files():
            digest.update(f"{source.relative_to(self.sources)} {source.stat().st_size}\n".encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()

    def _compile(self, classes: Path) -> None:
        classpath = os.pathsep.join(map(str, self.classpath))
        command = [
            _javac(),
            "--release",
            "17",
            "-d",
            str(classes),
            "-cp",
            classpath,
            *map(str, self._source_files()),
        ]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_TWO_MINUTES)
        except FileNotFoundError as error:
            raise CompileError(f"Install a JDK 17, not only a Java runtime: there is no `{command[0]}`.") from error
        if run.returncode != 0:
            raise CompileError(f"The classes in {self.sources} do not compile (it needs a JDK 17):\n{run.stderr}")


def log_store_jar(sources: Path, jars: Path, spark_jars: Path) -> JavaJar:
    """Return the jar of the log store, in `jars`, which has delta-storage."""
    classpath = (*jars.glob("delta-storage-*.jar"), *spark_jars.glob("hadoop-client-api-*.jar"))
    return JavaJar(jars / "millrace-log-store.jar", sources, classpath)


def formats_jar(sources: Path, jars: Path, spark_jars: Path) -> JavaJar:
    """Return the jar for formats that Spark itself cannot read, in `jars`."""
    needed = ("hadoop-client-api-*", "jackson-core-2*", "spark-sql-api_*", "zstd-jni-*")
    classpath = tuple(jar for name in needed for jar in spark_jars.glob(f"{name}.jar"))
    return JavaJar(jars / "millrace-formats.jar", sources, classpath)


def connect_server_jar(sources: Path, jars: Path, spark_jars: Path) -> JavaJar:
    """Return the jar of the Spark Connect server's main class, in `jars`."""
    needed = (
        "spark-connect_*",
        "spark-common-utils_*",
        "spark-core_*",
        "spark-sql-api_*",
        "spark-sql_*",
        "scala-library-*",
    )
    classpath = tuple(jar for name in needed for jar in spark_jars.glob(f"{name}.jar"))
    return JavaJar(jars / "millrace-connect-server.jar", sources, (*classpath, *spark_jars.glob("scala-library-*.jar")))


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "javac") if home else "javac"


def _fingerprint_in(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_FINGERPRINT).decode()
    except (FileNotFoundError, KeyError, zipfile.BadZipFile):
        return None


def _pack(classes: Path, fingerprint: str, jar: Path) -> None:
    """Write a jar whose bytes depend only on the classes: sorted entries without times."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\n\n")
        archive.writestr(zipfile.ZipInfo(_FINGERPRINT), fingerprint)
        for path in sorted(classes.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix()), path.read_bytes())

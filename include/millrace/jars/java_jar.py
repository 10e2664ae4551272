"""Compile Millrace's Java sources: each jar when its sources have changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from millrace.errors import MillraceError
from millrace.spark_location import data_plane, spark_home

OWN_JARS = {
    "millrace-log-store": ("log_store/src", "delta-storage-* hadoop-client-api-*"),
    "millrace-formats": ("formats/src", "hadoop-client-api-* jackson-core-2* spark-sql-api_* zstd-jni-*"),
    "millrace-connect-server": (
        "connect_server/src",
        "spark-connect_* spark-common-utils_* spark-core_* spark-sql-api_* spark-sql_* scala-library-*",
    ),
}
"""Name of a jar -> the folder of its sources in `millrace_spark`, and the jars to compile against: Delta's, Spark's."""

_FINGERPRINT = "META-INF/millrace-sources.sha256"


class CompileError(MillraceError):
    """Raised when sources do not compile; the message has the output of javac."""


@dataclass(frozen=True)
class JavaJar:
    """A jar of Millrace's own classes.

    Attributes:
        path: the jar's file.
        sources: the root of its Java sources.
        classpath: the jars to compile against.
        compiled: the jar that a wheel brings along; there is none beside sources that are not installed.
    """

    path: Path
    sources: Path
    classpath: tuple[Path, ...]
    compiled: Path

    def build(self) -> None:
        """Compile, or take the jar of a wheel, unless the jar was made from the same sources and the same classpath.

        Raises:
            CompileError: javac is missing, older than 17, or refuses the sources; the jar does not change then.
        """
        source_files = sorted(self.sources.rglob("*.java"))
        fingerprint = self._fingerprint(source_files)
        if _fingerprint_in(self.path) == fingerprint:
            return
        is_compiled = _fingerprint_in(self.compiled) == fingerprint
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".compiling-") as scratch:
            unfinished = Path(scratch) / self.path.name
            if is_compiled:
                shutil.copy(self.compiled, unfinished)
            else:
                classes = Path(scratch) / "classes"
                self._compile(source_files, classes)
                _pack(classes, fingerprint, unfinished)
            unfinished.replace(self.path)

    def _fingerprint(self, source_files: list[Path]) -> str:
        digest = hashlib.sha256()
        for jar in self.classpath:
            digest.update(f"{jar.name}\n".encode())
        for source in source_files:
            digest.update(f"{source.relative_to(self.sources)} {source.stat().st_size}\n".encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()

    def _compile(self, source_files: list[Path], classes: Path) -> None:
        home = os.environ.get("JAVA_HOME")
        javac = str(Path(home) / "bin" / "javac") if home else "javac"
        classpath = os.pathsep.join(map(str, self.classpath))
        command = [javac, "--release", "17", "-d", str(classes), "-cp", classpath, *map(str, source_files)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except FileNotFoundError as error:
            raise CompileError(f"Install a JDK 17, not only a Java runtime: there is no `{javac}`.") from error
        if run.returncode != 0:
            raise CompileError(f"The classes in {self.sources} do not compile (it needs a JDK 17):\n{run.stderr}")


def own_jar(name: str, folder: Path) -> JavaJar:
    """Return the jar of `OWN_JARS` with this name, to be built in `folder`, which has Delta's jars."""
    sources, needed = OWN_JARS[name]
    places = (folder, spark_home() / "jars")
    classpath = tuple(jar for pattern in needed.split() for place in places for jar in place.glob(f"{pattern}.jar"))
    return JavaJar(folder / f"{name}.jar", data_plane() / sources, classpath, data_plane() / "jars" / f"{name}.jar")


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

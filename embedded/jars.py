"""Resolve the jars of Millrace's Spark sessions once, so that no run has to.

    python -m embedded.jars                # into .jars: Delta's jars, Kafka's, S3's, and three of Millrace
    python -m embedded.jars --kafka-broker # also a Kafka broker into .jars/kafka-broker, 43 MB
    python -m embedded.jars --into FOLDER  # into another folder, for an image or a cluster

The command prints only errors. If all jars are there, it ends at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from embedded.java_jar import OWN_JARS, own_jar
from include.driver_environment import driver_environment, own_spark
from include.errors import MillraceError
from include.settings import PROJECT
from include.spark_location import spark_home

_LOCK = Path(__file__).with_name("jars.lock")
_NOT_NEEDED = (
    "com.*:*,commons-*:*,io.airlift:*,javax.*:*,org.apache.hadoop:hadoop-client*,org.apache.logging.*:*,"
    "org.apache.parquet:*,org.locationtech.*:*,org.openapitools:*,org.roaringbitmap:*,org.slf4j:*,"
    "org.wildfly.*:*,org.xerial.*:*"
)
"""Dependencies that Spark brings itself, or that are not used: without them the download is 13 MB, not 87 MB."""
_EXCLUDED_OF_GROUP = {
    "delta": _NOT_NEEDED,
    "kafka": f"{_NOT_NEEDED},org.apache.spark:spark-t*,org.lz4:*,org.scala-lang*:*",
    "kafka-token-provider": f"{_NOT_NEEDED},org.apache.kafka:*,org.scala-lang*:*",
    "s3": f"{_NOT_NEEDED},io.netty:*,org.apache.http*:*,software.amazon.awssdk:bundle,software.amazon.s3.*:*",
}
"""Group of jars.lock that drivers use -> dependencies that are not fetched with its jars."""


class JarsError(MillraceError):
    """Raised when a jar cannot be resolved, or differs from the lock."""


@dataclass(frozen=True)
class Jar:
    """One line of jars.lock.

    Attributes:
        coordinate: `group:artifact:version`, as Maven writes it.
        sha256: the SHA-256 of the jar's bytes, in hexadecimal.
    """

    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in `.jars`.

        >>> Jar("io.delta:delta-storage:4.4.0", "c467").file_name
        'delta-storage-4.4.0.jar'
        """
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def resolved_name(self) -> str:
        """The name that spark-submit gives to the resolved jar."""
        group, _, _ = self.coordinate.split(":")
        return f"{group}_{self.file_name}"

    def other_versions(self, folder: Path) -> list[Path]:
        """Return other versions of this jar in `folder`; they must not be on one classpath."""
        _, artifact, _ = self.coordinate.split(":")
        return [path for path in folder.glob(f"{artifact}-[0-9]*.jar") if path.name != self.file_name]


def locked_jars(group: str) -> list[Jar]:
    """Return the jars of a group of jars.lock, such as `delta` or `s3`."""
    with _LOCK.open("rb") as lock:
        return [Jar(coordinate, sha256) for coordinate, sha256 in tomllib.load(lock)[group].items()]


def install(jars: list[Jar], folder: Path, excluded: str = "") -> None:
    """Install these jars into `folder`, check their checksums, and remove other versions of them.

    Args:
        jars: the jars.
        folder: the folder; other files in it stay.
        excluded: dependencies that are not fetched, as `group:artifact`, separated by commas.

    Raises:
        JarsError: a jar cannot be resolved, or its checksum differs; `folder` is then as before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(_sha256(folder / jar.file_name) != jar.sha256 for jar in jars):
        with tempfile.TemporaryDirectory(dir=folder, prefix=".resolving-") as scratch:
            resolved = _resolve(jars, Path(scratch), excluded)
            for jar in jars:
                _check(jar, _sha256(resolved / jar.resolved_name))
            for jar in jars:
                (resolved / jar.resolved_name).replace(folder / jar.file_name)
    for jar in jars:
        for outdated in jar.other_versions(folder):
            outdated.unlink()


def _resolve(jars: list[Jar], scratch: Path, excluded: str) -> Path:
    """Fetch the jars by spark-submit, which needs only Java, and return their folder."""
    empty_script = scratch / "nothing.py"
    empty_script.touch()
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[1]"]
    command += ["--conf", f"spark.jars.ivy={scratch}"]
    command += ["--exclude-packages", excluded] if excluded else []
    command += ["--packages", ",".join(jar.coordinate for jar in jars), str(empty_script)]
    run = subprocess.run(
        command,
        env=driver_environment(os.environ, "local[1]", own_spark()),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if run.returncode != 0:
        output = (run.stdout + run.stderr).split("\n")
        # Many lines about hosts that Ivy tried, and stack traces, would hide the cause.
        lines = [line for line in output if line.strip() and "Host" not in line and "\tat " not in line]
        raise JarsError(
            "Spark's jars could not be resolved: let this machine reach Maven Central (https://repo1.maven.org/maven2),"
            " or set DEFAULT_ARTIFACT_REPOSITORY to a mirror of it, and try again. The last lines of spark-submit:\n"
            + "\n".join(lines[-15:])
        )
    return scratch / "jars"


def _check(jar: Jar, sha256: str | None) -> None:
    if sha256 is None:
        raise JarsError(f"spark-submit did not resolve {jar.coordinate}: check whether {__file__} excludes its group.")
    if sha256 != jar.sha256:
        raise JarsError(
            f"The download of {jar.coordinate} has the SHA-256 {sha256}, but {_LOCK} has {jar.sha256}. "
            "Do not use it before you know why. If you changed the version, update the checksum."
        )


def _sha256(path: Path) -> str | None:
    """Return the digest of a file; None if there is no such file."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main() -> None:
    """Run the command line; exit with 1 and the reason if a jar cannot be installed."""
    parser = argparse.ArgumentParser(prog="python -m embedded.jars", description="Resolves the jars of Spark once.")
    parser.add_argument("--kafka-broker", action="store_true", help="also a Kafka broker, 43 MB, into kafka-broker")
    parser.add_argument("--into", type=Path, default=PROJECT / ".jars", help="the folder (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        for group, excluded in _EXCLUDED_OF_GROUP.items():
            install(locked_jars(group), arguments.into, excluded)
        for name in OWN_JARS:
            own_jar(name, arguments.into).build()
        if arguments.kafka_broker:
            install(locked_jars("kafka-broker"), arguments.into / "kafka-broker")
    except MillraceError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""Several processes commit the same versions of one log through a log store: who wins, and how fast?"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from millrace.settings import Settings
from millrace.spark_location import spark_home

WRITERS = ("ann", "bob", "eve")
HARD_LINK = "io.millrace.logstore.HardLinkLogStore"
CONDITIONAL_PUT = "io.millrace.logstore.ConditionalPutLogStore"
_TEN_MINUTES = 600


@dataclass(frozen=True)
class Classpath:
    """The classpath of the Java processes of a race.

    Attributes:
        classes: the folder of the compiled test classes.
    """

    classes: Path

    def __str__(self) -> str:
        jars = Settings().jars
        return os.pathsep.join([str(self.classes), f"{jars}/*", f"{spark_home()}/jars/*"])

    def compile(self) -> None:
        """Compile the Java files of the races."""
        sources = [str(path) for path in (Path(__file__).parent / "java").glob("*.java")]
        command = ["javac", "--release", "17", "-d", str(self.classes), "-cp", str(self), *sources]
        subprocess.run(command, check=True, timeout=_TEN_MINUTES)


@dataclass(frozen=True)
class Answer:
    """The answer to a writer for one version.

    Attributes:
        won: whether the writer committed the version.
        took_ms: milliseconds of the write, with the wait for the other writers.
    """

    won: bool
    took_ms: float


@dataclass(frozen=True)
class Answers:
    """The answers to the writers of a race.

    Attributes:
        of: writer -> version -> answer.
    """

    of: dict[str, dict[int, Answer]]

    @property
    def winners(self) -> dict[int, list[str]]:
        """Version -> the writers that won it; one writer, if all is right."""
        versions = sorted(next(iter(self.of.values())))
        return {version: [name for name, answers in self.of.items() if answers[version].won] for version in versions}

    def lost(self, contents: Mapping[int, str]) -> int:
        """Return the number of acknowledged commits that the log with these contents does not have."""
        return sum(writer != contents.get(version) for version, winners in self.winners.items() for writer in winners)

    @property
    def median_ms(self) -> float:
        """The median of the milliseconds of the winning commits."""
        return median(answer.took_ms for answers in self.of.values() for answer in answers.values() if answer.won)


@dataclass(frozen=True)
class Race:
    """One race into an empty log.

    Attributes:
        classpath: the classpath of every writer.
        store: class name of the log store.
        log: URI of the log folder, which exists.
        versions: the number of versions that each writer tries to commit.
        settings: Hadoop settings.
        environment: additional environment variables.
    """

    classpath: Classpath
    store: str
    log: str
    versions: int
    settings: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    def run(self, barrier: Path, writers: Sequence[str] = WRITERS) -> Answers:
        """Run the race, and return the answers to the writers."""
        barrier.write_bytes(bytes(4))
        processes = [self.start(writer, barrier, len(writers)) for writer in writers]
        try:
            outputs = [process.communicate(timeout=_TEN_MINUTES)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        failed = [process.args for process in processes if process.returncode != 0]
        if failed:
            raise RuntimeError(f"writers failed, see standard error: {failed}")
        answers: dict[str, dict[int, Answer]] = {writer: {} for writer in writers}
        for writer, lines in zip(writers, outputs, strict=True):
            for version, outcome, nanos in map(str.split, lines.splitlines()):
                answers[writer][int(version)] = Answer(outcome == "won", int(nanos) / 1e6)
        return Answers(answers)

    def start(self, writer: str, barrier: Path, writers: int) -> subprocess.Popen[str]:
        """Start a writer, which waits at the barrier until `writers` processes are there."""
        command = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += [f"-Drace.barrier={barrier}", f"-Drace.writers={writers}", "-cp", str(self.classpath)]
        command += ["LogStoreRace", self.store, self.log, writer, str(self.versions), *self.settings]
        environment = {**os.environ, **dict(self.environment)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def commit_name(version: int) -> str:
    """Return the file name of a version in a Delta log.

    >>> commit_name(7)
    '00000000000000000007.json'
    """
    return f"{version:020d}.json"


def local_contents(log: Path, versions: int) -> dict[int, str]:
    """Return the line of each version of a local log."""
    return {version: (log / commit_name(version)).read_text().strip() for version in range(versions)}

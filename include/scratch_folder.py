"""Where a driver puts things aside, so that nothing of it stays in the machine's temporary folder, however it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory


@contextmanager
def with_scratch_folder(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment with the variables by which Python, Java and Spark find a folder that goes with this block.

    A JVM that is killed leaves its native libraries, and each one the folders of Spark's sessions. Who names another
    place for Spark's scratch files (`SPARK_LOCAL_DIRS`) has them there.
    """
    with TemporaryDirectory(prefix="millrace-", ignore_cleanup_errors=True) as folder:
        options = [environment.get("JDK_JAVA_OPTIONS", ""), f'"-Djava.io.tmpdir={folder}"']
        own = {"TMPDIR": folder, "JDK_JAVA_OPTIONS": " ".join(filter(None, options))}
        yield {"SPARK_LOCAL_DIRS": folder, **environment, **own}

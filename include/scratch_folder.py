"""The scratch folder of a driver, which is deleted when the driver ends, for any reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryDirectory


@contextmanager
def with_scratch_folder(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment with variables that point Python, Java and Spark to a folder that is deleted afterwards.

    A killed JVM leaves its native libraries, and every JVM the folders of Spark's sessions. `SPARK_LOCAL_DIRS`, if set,
    still decides about Spark's scratch files.
    """
    with TemporaryDirectory(prefix="millrace-", ignore_cleanup_errors=True) as folder:
        options = [environment.get("JDK_JAVA_OPTIONS", ""), f'"-Djava.io.tmpdir={folder}"']
        own = {"TMPDIR": folder, "JDK_JAVA_OPTIONS": " ".join(filter(None, options))}
        yield {"SPARK_LOCAL_DIRS": folder, **environment, **own}

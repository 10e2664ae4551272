"""The Spark settings of all sessions of Millrace; spark-submit, the warm server and tests share them."""

from __future__ import annotations

import os
from pathlib import Path

from millrace.errors import SparkUnavailableError
from millrace.new_files import HADOOP_UMASK, umask_of_process

LOG_STORES = {
    "spark.delta.logStore.file.impl": "io.millrace.logstore.HardLinkLogStore",
    "spark.delta.logStore.s3a.impl": "io.millrace.logstore.ConditionalPutLogStore",
    "spark.delta.logStore.s3.impl": "io.millrace.logstore.ConditionalPutLogStore",
    "spark.delta.logStore.s3n.impl": "io.millrace.logstore.ConditionalPutLogStore",
}
"""The log stores that keep acknowledged commits from being lost (ADR 0003); sessions without them refuse to write."""

SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Otherwise Spark replaces ${env:NAME} in SQL, even within quotes, by a variable of its process: maybe a secret.
    "spark.sql.variable.substitute": "false",
    # A JSON record that names a field twice must not fail the batch: the last one counts, as in most JSON readers.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # Delta's change feed makes Java objects of its rows. Those of Spark's default have no 5th to 14th October 1582.
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Spark's default is the old type INT96: slower to write, and without the statistics by which readers skip data.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A MERGE into a table with a change feed writes data files and change files. By default Spark keeps one file open,
    # so it first sorts all rows by the folder to which they go.
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # Each partition of a table's log is a task that generates the same code again. One is enough for 100,000 files.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    # A summary of the table next to each commit takes three quarters of the log, in a bucket a rename of about twenty
    # requests, and has no reader.
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    # The table property deletedFileRetentionDuration says how long VACUUM keeps files; a shorter RETAIN must fail.
    "spark.databricks.delta.retentionDurationCheck.enabled": "true",
}
"""The settings of every session."""

OWN_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark makes up the secret. Without it, other users of the machine may fetch the blocks of a driver.
    "spark.authenticate": "true",
}
"""The settings that keep a driver with tasks of its own from whoever is not its user; of a cluster they are its own."""

LAUNCH = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Dderby.system.home=/tmp",
    "spark.executorEnv.TZ": "UTC",
    # Hadoop finds its other codecs itself; its own codec for .zst needs a native library that pip's pyspark lacks.
    "spark.hadoop.io.compression.codecs": "io.millrace.formats.ZstdCodec",
    # A cancelled task that goes on for two minutes, as in an endless loop, ends its executor, or the warm server:
    # otherwise it would keep its core for ever.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "120s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # A run of a few tables needs several hundred generated classes; the default cache of 100 loses them until the next.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Otherwise each function of PySpark first finds out which line of Python calls it, for the text of errors. That
    # took more than half of the requests, and of the time, in which forty rules become columns.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
"""The settings that take effect only before a JVM starts."""

ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""The option without the JVM's second compiler, which takes a third of a short run's CPU, but halves a long run's."""

LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=60000 -XX:Tier4MinInvocationThreshold=10000 "
    "-XX:Tier4CompileThreshold=120000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Thresholds at which the second compiler compiles code that runs once per row, but not code that plans a query. The
JVM's own thresholds are a twelfth of these; with them the compiler takes 10 CPU-seconds, twice as many."""

SMALL_MACHINE = "-XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
"""JVM options that save CPU time on a single machine (`benchmarks/README.md`): no parallel garbage collector, and room
for compiled code, which fills the default cache within a minute and then stops the compiler."""

LARGE_LOAD = 12 * 1024**2
"""A driver uses the second compiler if it loads at least this many bytes of landing files. The compiler pays off from a
million records on, which are 12 MB of compressed files and 96 MB of text (`benchmarks/README.md`)."""

DRIVER_VARIABLES = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""Environment variables of every driver. Millrace's models use no plugin of pydantic, and the search for plugins opens
each archive on Python's path, which takes a tenth of the time in which a driver's Python starts."""

STARTED_BY = "MILLRACE_STARTED_BY"
"""The environment variable with the pid of the process that started a driver. Without that process, the driver ends."""


def launch_conf(jars: Path, master: str, *, large_load: bool = False) -> dict[str, str]:
    """Return all settings of a new Spark application for `master`.

    On `local[...]` the shuffle partitions follow the cores and the jars go on the driver's class path,
    which starts two seconds faster than shipping them; a cluster needs them shipped.

    Args:
        jars: the folder of the jars.
        master: a Spark master.
        large_load: whether it will process so many rows that the JVM's second compiler pays off.

    Raises:
        SparkUnavailableError: `jars` holds no jar.
    """
    files = sorted(jars.glob("*.jar"))
    if not files:
        raise SparkUnavailableError(f"no Spark jars in {jars}", "`lakehouse jars` fetches them.")
    conf = {**LAUNCH, **LOG_STORES, **SESSION, HADOOP_UMASK: f"{umask_of_process():03o}"}
    if not master.startswith("local"):
        return {**conf, "spark.jars": ",".join(map(str, files))}
    compiler = LATE_COMPILER if large_load else ONE_COMPILER
    java = " ".join((LAUNCH["spark.driver.extraJavaOptions"], SMALL_MACHINE, compiler))
    archive = class_archive(jars)
    cores = master.removeprefix("local").strip("[]").split(",")[0]
    return {
        **conf,
        **OWN_MACHINE,
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.driver.extraJavaOptions": f'{java} "-XX:SharedArchiveFile={archive}"' if archive.is_file() else java,
        "spark.sql.shuffle.partitions": cores if cores.isdigit() else str(os.cpu_count() or 2),
        # A MERGE joins a few changes with all rows of the files that it rewrites. With a hash table of the changes it
        # need not sort these rows. Spark requires that the first value is at least as large as the second.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "16m",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    }


def class_archive(jars: Path) -> Path:
    """Return the place of the archive of the classes that a driver loads; a JVM also starts without it."""
    return jars / "spark-classes.jsa"

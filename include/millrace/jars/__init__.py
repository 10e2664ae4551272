"""The jars of Spark sessions: those of others by a lock with checksums, and Millrace's own from its Java sources.

`millrace.spark_conf` says how a session uses them.
"""

"""How a table differs from its spec, and where a rebuild builds beside it.

What a run applies of it is decided in `spark_jobs.layers`.
"""

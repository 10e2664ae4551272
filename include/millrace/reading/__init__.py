"""Read certified versions: the version of a table, its rows for other libraries, and DuckDB with a view for each table.

Nothing here writes to a lakehouse, reads a spec or starts Spark. What a terminal shows is in `millrace.cli`.
"""

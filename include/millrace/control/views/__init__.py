"""A folder with views of the certified versions for other engines: SQL scripts, a DuckDB file, and a list in JSON.

What the certified version of a table is, and when it moves, is decided in `millrace.control.gates`.
"""

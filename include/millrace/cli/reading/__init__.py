"""`lakehouse query`: rows of the certified versions, for people and for other programs.

The versions are found, and opened for DuckDB, by `millrace.reading`; the other
commands about tables are a folder above.
"""

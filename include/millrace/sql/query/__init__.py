"""The query of a gold table: whether it may run, what its columns come from, and how it is refreshed.

The queries of rules, which name their tables in braces, are read in `millrace.sql.rule_query`.
"""

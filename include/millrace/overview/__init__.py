"""What a person asks about all tables, or about one: is anything wrong, where, and what helps?

It reads specs, the states of tables and the ledger; never Spark, never the data of a table. How it is shown belongs to
the pages of the web UI, the command line and the metrics.
"""

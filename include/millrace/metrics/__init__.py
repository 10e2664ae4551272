"""The lakehouse as numbers for Prometheus.

The facts are those of the web UI's pages: the state of each table and the ledger, never Spark, never the data of a
table. A label never has a value that grows without a limit, such as a file, a run or a message.
"""

"""What a run of a DAG did, table by table: rows, checks, conflicts and time.

Its tasks come from the orchestrator's database, which the caller reads; versions, gate results and conflicts come from
the states of the tables and from the ledger.
"""

"""What is to be done, and who may do it: logs, ledger, leases, gates, landing files, plans.

Spark's own work lives in `millrace_spark`.
"""

"""Read Delta logs without Spark: commits, batches, and open tables that follow their commits.

What Millrace records outside the logs is in `millrace.control.ledger.ledger`.
"""

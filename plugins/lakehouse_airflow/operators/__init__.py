"""What a task does: write a table, check it, maintain it, ask a person.

The factory builds the DAGs.
"""

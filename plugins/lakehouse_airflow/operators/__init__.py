"""What a task does: write a table, judge it, maintain it, ask a person.

The DAGs are put together in the factory.
"""

"""What a task does: write a table, judge it, maintain it."""

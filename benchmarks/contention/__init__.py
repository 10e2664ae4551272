"""Concurrent writers of one table: the number of their commits, and the cost of a commit."""

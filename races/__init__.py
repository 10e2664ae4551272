"""Races of writers for one table, to find lost commits that were acknowledged."""

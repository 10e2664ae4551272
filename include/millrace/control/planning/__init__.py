"""Plan a run: its source versions, its landing files, its full snapshots.

Planning writes nothing to a table. The driver plans again under its lease.
"""

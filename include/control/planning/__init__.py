"""What a run would do: its sources, its files, its full snapshots.

Nothing here writes; the driver plans again under its lease.
"""

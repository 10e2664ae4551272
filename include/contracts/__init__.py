"""What the sides agree on: intervals, places, table specs, job arguments and reports.

Frozen models, validated at the edge; nothing here reads or writes.
"""

"""What a single landing file holds, format by format, before Spark reads it.

Which files belong to a run is decided one folder up.
"""

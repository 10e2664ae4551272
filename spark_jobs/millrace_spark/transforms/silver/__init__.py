"""Functions that turn bronze rows into states and periods of keys.

They are pure: no session, table or clock.
"""

"""From bronze rows to states and periods of keys.

Pure: no session, table or clock.
"""

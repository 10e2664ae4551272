"""Functions that make columns and frames from columns and frames.

They are pure: no session, table, clock or setting.
"""

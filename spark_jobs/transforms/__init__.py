"""Columns and frames made from columns and frames.

Pure: no session, no table, no clock, no setting.
"""

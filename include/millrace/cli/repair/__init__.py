"""`lakehouse repair`: what a repair would change, and its execution by the id of what was shown.

What a repair does is in `millrace.repair`.
"""

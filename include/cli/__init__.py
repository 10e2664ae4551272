"""The command line: a module for each command, and what several commands share.

What a command decides lives in `include.control`; here it is asked for, and printed.
"""

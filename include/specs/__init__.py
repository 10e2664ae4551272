"""Spec files read, and all that is wrong with them said; `include.catalog` is the way in.

What a lakehouse holds is not known here.
"""

"""Single files and objects, on a disk and in a bucket.

What they mean is not known here.
"""

"""The verdict on a version: what is judged, what each rule says, and the line a person reads.

How a rule is worked out lives beside this folder.
"""

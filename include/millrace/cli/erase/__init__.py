"""`lakehouse erase`: what is stored of a person, its erasure by the id of what was shown, and its proof.

What an erasure does is in `millrace.erase`.
"""

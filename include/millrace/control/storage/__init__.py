"""Read and write single files and objects, in a folder or in a bucket.

This folder does not depend on their content.
"""

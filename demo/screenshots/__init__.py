"""The screenshots of the documentation, taken by a browser from the demo's own data (`make screenshots`).

The end-to-end tests use the same browser. A picture that was made by hand does not belong here.
"""

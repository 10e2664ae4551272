"""What Millrace's tasks tell OpenLineage: datasets and their facets, from specs and the tables' logs.

These modules load the client of OpenLineage, so they are imported only by a task that sends events.
"""

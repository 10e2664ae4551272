"""Where rows and columns come from, who gets them, and what a change of a column breaks, by the specs alone.

How a page or the command line shows it is decided there; the events for OpenLineage are made in
`lakehouse_airflow.lineage`.
"""

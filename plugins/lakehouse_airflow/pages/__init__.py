"""The pages about tables: the list of all tables, and a page with tabs for each table.

A tab is a module in `tabs` and a template of the same name in `templates/table`; `table_page.py` has their list. A
route is a plain `def`, which FastAPI runs in a thread, so that no page blocks the API server. Pages only read; what
changes something is a form of `lakehouse_airflow.ui.trigger_form`, to which they link.
"""

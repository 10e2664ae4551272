"""Tell people what needs them: one message for a cause, and none twice.

The causes are those of the page Lakehouse (`millrace.overview.attention`). How a message is sent belongs to Airflow's
notifiers.
"""
